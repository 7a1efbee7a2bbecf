others = []
for path in glob.glob("/proc/[0-9]*"):
    if int(path.split("/")[-1]) not in (1, os.getpid()):
        try:
            others.append(open(path + "/cmdline", "rb").read().decode("utf-8", "replace"))
        except OSError:
            pass
say("TRIED processes", others)
if any("casewarden" in line and "shim" not in line for line in others):
    say("GOT the processes of other containers", others)
observe()
finish()
