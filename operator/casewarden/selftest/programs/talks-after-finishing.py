observe()
say("TRIED to talk on")
raw(b'{"finish": true}\n{"tool": "close_ticket", "arguments": {}}\n{"finish": true}\n')
sys.stdin.read()
