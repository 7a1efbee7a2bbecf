written = 0
try:
    with open("/dev/termination-log", "ab", buffering=0) as file:
        for _ in range(4096):
            written += file.write(b"x" * (1 << 20))
except OSError as error:
    say("refused", error)
say("TRIED to fill the termination log", written)
if written > 256 << 20:
    say("GOT the node's disk", written)
observe()
finish()
