observe()
say("TRIED escape sequences")
os.write(2, b"\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\x9b31m\xe2\x80\xae<script>alert(1)</script>" + b"A" * 500 + b"\n")
os._exit(9)
