python3 -c '
import os, time
def change():
    seen = os.stat("/root/log").st_mtime_ns
    while os.stat("/root/log").st_mtime_ns == seen:
        time.sleep(0.02)
change()
began = time.monotonic()
change()
change()
print(round((time.monotonic() - began) / 2))
'
