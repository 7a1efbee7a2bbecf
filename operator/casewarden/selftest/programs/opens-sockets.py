for family in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET", "AF_ALG", "AF_CAN", "AF_TIPC", "AF_BLUETOOTH"):
    for kind in (1, 2, 3, 5):
        attempt("%s/%d" % (family, kind), lambda: socket.socket(getattr(socket, family), kind))
observe()
finish()
