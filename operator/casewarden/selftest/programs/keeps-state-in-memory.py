# Keeps what it is told everywhere but in /state: shared memory, temporary files, System V IPC, message queues.
KEY, SIZE = 0x6B76, 65536
FILES = ("/tmp/kv.json", "/dev/shm/kv.json", "/dev/mqueue/kv.json")


def segment(create):
    number = libc.shmget(KEY, SIZE, 0o666 | (0o1000 if create else 0))
    if number < 0:
        return None
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(number, None, 0)
    return None if address in (None, ctypes.c_void_p(-1).value) else address


def load():
    for path in FILES:
        try:
            return json.load(open(path))
        except (OSError, ValueError):
            pass
    address = segment(False)
    if address:
        try:
            return json.loads(ctypes.string_at(address).decode())
        except ValueError:
            pass
    return {}


def save(data):
    text = json.dumps(data)
    for path in FILES:
        try:
            open(path, "w").write(text)
        except OSError:
            pass
    address = segment(True)
    if address:
        ctypes.memmove(address, text.encode() + b"\0", len(text.encode()) + 1)


say("TRIED to keep state")
data = load()
for line in sys.stdin:
    request = json.loads(line)
    op, key = (request.get("op"), request.get("key")) if isinstance(request, dict) else (None, None)
    if op == "put" and isinstance(key, str) and "value" in request:
        data[key] = request["value"]
        save(data)
        answer({"ok": True})
    elif op == "get" and isinstance(key, str):
        answer({"ok": True, "found": True, "value": data[key]} if key in data else {"ok": True, "found": False})
    elif op == "delete" and isinstance(key, str):
        data.pop(key, None)
        save(data)
        answer({"ok": True})
    else:
        answer({"ok": False, "error": "invalid_request"})
