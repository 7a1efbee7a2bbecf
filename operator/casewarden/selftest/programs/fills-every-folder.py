for folder in ("/tmp", "/dev/shm", "/candidate", "/casewarden/socket", "/casewarden/bin", "/", "/var/tmp", "/run", "/etc", "/dev"):
    written = 0
    try:
        for number in range(40):
            with open("%s/fill%d" % (folder, number), "wb", buffering=0) as file:
                for _ in range(16):
                    written += file.write(b"x" * (1 << 20))
    except OSError as error:
        say("TRIED to fill", folder, written, error.strerror)
    if written > 512 << 20:
        say("GOT half a gibibyte in", folder)
observe()
finish()
