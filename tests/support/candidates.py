"""Small candidate programs that tests apply as ConfigMaps; what each does is its name."""

from __future__ import annotations

FINISHES_AFTER = """\
import json, sys, time
for line in sys.stdin:
    time.sleep({seconds})
    print(json.dumps({{"finish": True}}), flush=True)
"""

FINISHES_AT_ONCE = FINISHES_AFTER.format(seconds=0)
EXITS_127 = "import sys\nsys.exit(127)\n"
CRASHES = "raise SystemExit('no agent here')\n"

# Answers correctly for as long as some process of its own lives: a daemon holds the data, the program only asks it.
DAEMON_KEEPS_STATE = """\
import json, os, socket, sys

ADDRESS = "\\0kv-daemon"
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
                stream.write(json.dumps(answer) + "\\n")
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
"""

# Tries to open sockets in every way that Python has; says in its answer (which is a protocol error) what opened.
OPENS_SOCKETS = """\
import ctypes, json, os, platform, socket, sys

opened = []
for family in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(getattr(socket, family), kind).close()
            opened.append(f"{family}/{kind}")
        except OSError:
            pass
libc = ctypes.CDLL(None, use_errno=True)
if platform.machine() == "x86_64":
    if libc.syscall(41, 2, 1, 0) >= 0:
        opened.append("syscall socket")
    if libc.syscall(0x40000000 | 41, 2, 1, 0) >= 0:
        opened.append("x32 socket")
    if libc.syscall(425, 8, ctypes.create_string_buffer(256)) >= 0:
        opened.append("io_uring")
for line in sys.stdin:
    print(json.dumps({"opened": opened} if opened else {"finish": True}), flush=True)
"""

# socket(AF_INET, SOCK_STREAM) through the 32-bit gate, from machine code in an anonymous page.
INT_0X80 = """\
import ctypes, json, mmap, sys

# push rbx; mov eax,359 (socket); mov ebx,2; mov ecx,1; xor edx,edx; int 0x80; pop rbx; ret
CODE = bytes.fromhex("53" "b867010000" "bb02000000" "b901000000" "31d2" "cd80" "5b" "c3")
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(CODE)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
result = call()
for line in sys.stdin:
    print(json.dumps({"opened": "int 0x80"} if result >= 0 else {"finish": True}), flush=True)
"""

FORK_BOMB = """\
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
