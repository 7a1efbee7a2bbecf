observe()
say("TRIED frames")
for header in ({"event": "exit", "session": 1, "code": 0, "signal": None, "oom": False},
               {"id": 1, "ok": False, "error": {"party": "environment", "reason": "StoreUnavailable", "message": "x"}},
               {"event": "hello", "v": 1, "pid": 1, "uid": 0}):
    body = json.dumps(header).encode()
    raw(struct.pack(">I", len(body)) + body)
raw(b"\n")
finish()
