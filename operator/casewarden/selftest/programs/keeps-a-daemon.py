say("TRIED a daemon that keeps state")
import json, os, socket, sys

ADDRESS = "\0kv-daemon"
FALLBACK = "/tmp/kv-daemon.sock"


def same(left, right):
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def apply(data, request):
    bad = {"ok": False, "error": "invalid_request"}
    if not isinstance(request, dict):
        return bad
    op, key = request.get("op"), request.get("key")
    if op == "batch":
        operations = request.get("operations")
        if not isinstance(operations, list):
            return bad
        for item in operations:
            if not isinstance(item, dict) or item.get("op") not in ("put", "delete"):
                return bad
            if not isinstance(item.get("key"), str):
                return bad
            if item["op"] == "put" and "value" not in item:
                return bad
        for item in operations:
            apply(data, item)
        return {"ok": True}
    if op not in ("put", "get", "delete", "cas") or not isinstance(key, str):
        return bad
    if op == "put":
        if "value" not in request:
            return bad
        data[key] = request["value"]
        return {"ok": True}
    if op == "get":
        return {"ok": True, "found": True, "value": data[key]} if key in data else {"ok": True, "found": False}
    if op == "delete":
        data.pop(key, None)
        return {"ok": True}
    if "expected" not in request or "value" not in request:
        return bad
    if key in data and same(data[key], request["expected"]):
        data[key] = request["value"]
        return {"ok": True, "swapped": True}
    return {"ok": True, "swapped": False}


def serve(listener):
    data = {}
    while True:
        peer, _ = listener.accept()
        with peer, peer.makefile("rw") as stream:
            for line in stream:
                try:
                    answer = apply(data, json.loads(line))
                except ValueError:
                    answer = {"ok": False, "error": "invalid_request"}
                stream.write(json.dumps(answer) + "\n")
                stream.flush()


def connect():
    for address in (ADDRESS, FALLBACK):
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(address)
            return client
        except OSError:
            client.close()
    return None


client = connect()
if client is None:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(ADDRESS)
    except OSError:
        listener.bind(FALLBACK)
    listener.listen(8)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            serve(listener)
        os._exit(0)
    listener.close()
    client = connect()
stream = client.makefile("rw")
for line in sys.stdin:
    stream.write(line)
    stream.flush()
    sys.stdout.write(stream.readline())
    sys.stdout.flush()
