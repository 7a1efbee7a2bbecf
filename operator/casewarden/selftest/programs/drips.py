observe()
say("TRIED to drip")
for letter in '{"finish": ' + " " * 600:
    raw(letter.encode())
    time.sleep(1)
