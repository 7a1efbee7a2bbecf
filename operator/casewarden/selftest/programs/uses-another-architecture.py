if platform.machine() == "x86_64":
    # push rbx; mov eax,359 (socket); mov ebx,2; mov ecx,1; xor edx,edx; int 0x80; pop rbx; ret
    code = bytes.fromhex("53" "b867010000" "bb02000000" "b901000000" "31d2" "cd80" "5b" "c3")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    attempt("int 0x80 socket", call, won=lambda result: result >= 0)
    attempt("x32 socket", lambda: syscall(0x40000000 | 41, 2, 1, 0))
say("TRIED another architecture")
observe()
finish()
