for path in ("/casewarden/task", "/casewarden/task/evidence.sock", "/casewarden/spool", "/casewarden/candidate",
             "/casewarden/env", "/var/run/casewarden"):
    attempt(path, lambda: os.stat(path))
stream = socket.socket(socket.AF_UNIX)
attempt("connect to the driver's socket", lambda: stream.connect("/casewarden/task/evidence.sock") or "connected")
observe()
finish()
