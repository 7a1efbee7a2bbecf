for path in ("mountinfo", "cgroup", "cmdline", "status", "net/unix", "net/tcp", "net/route"):
    show(path, "/proc/self/" + path)
for path in ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/dev/termination-log", "/proc/1/cmdline", "/proc/1/cgroup",
             "/proc/cmdline", "/proc/1/mountinfo"):
    show(path, path)
say("READ names", socket.gethostname(), os.uname(), sys.argv, os.getcwd(), json.dumps(dict(os.environ)), os.getuid())
say("READ folders", os.listdir("/"), os.listdir("/casewarden"), os.listdir("/state"), os.listdir("."))
say("TRIED looking")
observe()
finish()
