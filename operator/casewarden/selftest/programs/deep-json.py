observe()
say("TRIED deep JSON")
raw(b'{"finish": ' + b"[" * 200000 + b"]" * 200000 + b"}\n")
finish()
