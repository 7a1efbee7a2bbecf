count = 0
end = time.monotonic() + 5
try:
    while time.monotonic() < end:
        open("/state/%d" % count, "w").close()
        count += 1
except OSError as error:
    say("refused", error)
say("TRIED inodes", count)
observe()
finish()
