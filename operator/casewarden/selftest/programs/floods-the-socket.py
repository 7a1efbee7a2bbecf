held = []
for number in range(900):
    stream = socket.socket(socket.AF_UNIX)
    stream.setblocking(False)
    try:
        stream.connect("/casewarden/socket/shim.sock")
        stream.send(b"\xff" * 65536)
    except OSError:
        pass
    held.append(stream)
say("TRIED a flood of", len(held))
observe()
finish()
