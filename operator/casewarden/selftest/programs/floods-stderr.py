observe()
say("TRIED a flood")
while True:
    os.write(2, b"x" * 65535 + b"\n")
