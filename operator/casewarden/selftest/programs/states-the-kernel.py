# No attack: says what the kernel is, for the report.
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
say("FACT kernel", os.uname().release, os.uname().machine)
say("FACT seccomp", status.get("Seccomp", "").strip(), "filters", status.get("Seccomp_filters", "?").strip())
say("FACT no_new_privs", status.get("NoNewPrivs", "").strip())
say("FACT capabilities", status.get("CapEff", "").strip(), status.get("CapBnd", "").strip())
lines = open("/proc/self/cgroup").read().splitlines()
say("FACT cgroup", "v2" if all(line.startswith("0::") for line in lines) else "v1")
libc.syscall.restype = ctypes.c_long
say("FACT landlock", max(libc.syscall(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint(1)), 0))
say("FACT processes", resource.getrlimit(resource.RLIMIT_NPROC)[1])
say("TRIED to look")
observe()
finish()
