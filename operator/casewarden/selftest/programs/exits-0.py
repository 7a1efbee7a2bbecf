observe()
say("TRIED exit code 0")
os._exit(0)
