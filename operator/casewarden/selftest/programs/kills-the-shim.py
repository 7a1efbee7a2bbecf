# Said before it is done: the SIGTERM among them ends the shim, and this program with it, at once.
observe()
say("TRIED every signal at PID 1")
for number in range(1, 65):
    if number not in (32, 33):
        try:
            os.kill(1, number)
        except OSError:
            pass
finish()
