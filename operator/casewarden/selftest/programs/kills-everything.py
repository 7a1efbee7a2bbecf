observe()
say("TRIED to kill everything")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
    try:
        os.kill(-1, number)
    except OSError as error:
        say("refused", error)
finish()
