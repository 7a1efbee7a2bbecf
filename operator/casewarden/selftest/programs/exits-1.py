observe()
say("TRIED exit code 1")
os._exit(1)
