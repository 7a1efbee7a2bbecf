observe()
say("TRIED to fill the memory")
hoard = []
while True:
    hoard.append(bytearray(os.urandom(1) * (16 << 20)))
