observe()
say("TRIED invalid UTF-8")
raw(b'{"finish": true, "message": "\xff\xfe\xc3\x28"}\n')
finish()
