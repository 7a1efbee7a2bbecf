observe()
say("TRIED a long error")
os.write(2, b"E" * 900000 + b"\n")
os._exit(1)
