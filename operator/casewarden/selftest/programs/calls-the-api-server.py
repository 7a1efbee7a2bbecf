for host, port in (("kubernetes.default.svc", 443), ("10.96.0.1", 443), ("10.0.0.1", 443), ("127.0.0.1", 10250), ("127.0.0.1", 6443)):
    attempt("%s:%d" % (host, port), lambda: socket.create_connection((host, port), 2))
observe()
finish()
