observe()
say("TRIED a flood")
while True:
    raw(b"x" * 65535 + b"\n")
