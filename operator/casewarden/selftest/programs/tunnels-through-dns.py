servers = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")]
for name in ("leak-me.example.com", "kubernetes.default.svc.cluster.local"):
    attempt("look up " + name, lambda: socket.getaddrinfo(name, 80))
for server in servers + ["10.96.0.10", "8.8.8.8"]:
    attempt("datagram to " + server, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"\0" * 32, (server, 53)))
observe()
finish()
