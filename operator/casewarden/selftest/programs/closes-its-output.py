observe()
say("TRIED to close its output")
os.close(1)
time.sleep(600)
