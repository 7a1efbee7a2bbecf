observe()
say("TRIED an endless line")
while True:
    raw(b'{"finish": true, ' + b" " * 65000)
