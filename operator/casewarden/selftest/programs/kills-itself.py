observe()
say("TRIED SIGKILL of itself")
os.kill(os.getpid(), signal.SIGKILL)
