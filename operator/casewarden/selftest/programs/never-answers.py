observe()
say("TRIED silence")
time.sleep(600)
