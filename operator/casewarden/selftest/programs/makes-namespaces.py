for flag, name in ((0x10000000, "user"), (0x40000000, "network"), (0x00020000, "mount"), (0x20000000, "process")):
    attempt("a %s namespace" % name, lambda: libc.unshare(flag), won=lambda code: code == 0)
attempt("clone3", lambda: syscall(435, ctypes.create_string_buffer(88), 88))
attempt("setns", lambda: syscall(308 if platform.machine() == "x86_64" else 268, os.open("/proc/1/ns/net", os.O_RDONLY), 0))
observe()
finish()
