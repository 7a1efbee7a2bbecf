say("TRIED to answer before the question")
for _ in range(20):
    raw(b'{"finish": true, "message": "before the question"}\n')
sys.stdin.read()
