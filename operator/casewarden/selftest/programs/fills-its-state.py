written = 0
try:
    for number in range(64):
        with open("/state/%d" % number, "wb", buffering=0) as file:
            for _ in range(64):
                written += file.write(b"x" * (1 << 20))
except OSError as error:
    say("refused", error)
say("TRIED to fill /state", written)
if written > 1 << 30:
    say("GOT more than a gibibyte")
observe()
finish()
