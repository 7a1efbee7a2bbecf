for host, port in (("169.254.169.254", 80), ("169.254.170.2", 80), ("fd00:ec2::254", 80), ("metadata.google.internal", 80), ("168.63.129.16", 80)):
    attempt("%s:%d" % (host, port), lambda: socket.create_connection((host, port), 2))
observe()
finish()
