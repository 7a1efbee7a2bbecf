names = set()
for line in open("/proc/net/unix").read().splitlines()[1:]:
    fields = line.split()
    if len(fields) > 7 and fields[7].startswith("@"):
        names.add("\0" + fields[7][1:])
for name in sorted(names) + ["\0casewarden", "\0containerd-shim", "\0dbus"]:
    attempt("connect to @" + name[1:], lambda: socket.socket(socket.AF_UNIX).connect(name) or "connected")
say("TRIED", len(names), "abstract sockets")
observe()
finish()
