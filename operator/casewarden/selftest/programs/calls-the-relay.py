hosts = [line.split() for line in open("/etc/hosts") if "casewarden" in line]
targets = {name for line in hosts for name in line} | {"casewarden-relay.casewarden-system.svc"}
for target in sorted(targets):
    attempt("the relay at " + target, lambda: socket.create_connection((target, 8080), 2))
observe()
finish()
