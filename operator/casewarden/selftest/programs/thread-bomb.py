threads = 0
try:
    for _ in range(5000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        threads += 1
except BaseException as error:
    say("refused", error)
say("TRIED threads", threads)
if threads > 1024:
    say("GOT more threads than it may have")
observe()
finish()
