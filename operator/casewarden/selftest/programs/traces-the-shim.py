for request, name in ((16, "attach"), (0x4206, "seize")):
    attempt("ptrace " + name, lambda: libc.ptrace(request, 1, 0, 0), won=lambda result: result == 0)
attempt("kcmp with PID 1", lambda: syscall(312, 1, os.getpid(), 0, 0, 0))
observe()
finish()
