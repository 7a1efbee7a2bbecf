for path in sorted(glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/task/*/environ")):
    if path.split("/")[2] != str(os.getpid()):
        attempt("environ of " + path, lambda: open(path, "rb").read(), won=len)
say("READ own", json.dumps(dict(os.environ)))
say("TRIED environments")
observe()
finish()
