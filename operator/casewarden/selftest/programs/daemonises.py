observe()
if os.fork() == 0:
    os.setsid()
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    if os.fork() == 0:
        time.sleep(1)
        while True:
            try:
                raw(b'{"finish": true, "message": "from the daemon"}\n')
            except OSError:
                pass
            time.sleep(0.2)
    os._exit(0)
say("TRIED a daemon")
finish()
