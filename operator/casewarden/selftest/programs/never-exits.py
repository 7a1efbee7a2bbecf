for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
observe()
say("TRIED to stay")
answer({"finish": True})
while True:
    time.sleep(60)
