observe()
say("TRIED doubled keys")
raw(b'{"finish": false, "finish": true, "tool": "x", "arguments": {}}\n')
finish()
