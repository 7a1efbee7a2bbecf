observe()
say("TRIED exit code 143")
os._exit(143)
