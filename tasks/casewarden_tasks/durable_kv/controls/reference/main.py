"""A correct durable-kv service: a table in memory, and a log on disk that every change reaches before its answer.

One line of the log is one acknowledged change, "<crc32 of the rest> <JSON list of writes>", so a batch is there whole
or not at all. A start replays the log up to the first line that is torn or damaged and cuts the rest off.
"""

import json
import os
import sys
import zlib

REFUSED = {"ok": False, "error": "invalid_request"}


class Refused(Exception):
    """The request is invalid."""


def text_of(value):
    return json.dumps(value, sort_keys=True, allow_nan=False)


class Log:
    def __init__(self, path):
        self.file = open(path, "a+b")
        folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        os.fsync(folder)  # the name of a new file must survive, too
        os.close(folder)

    def replay(self):
        self.file.seek(0)
        sound = 0
        for line in self.file:
            checksum, _, body = line.partition(b" ")
            if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body):
                break
            sound += len(line)
            yield from json.loads(body)
        self.file.truncate(sound)

    def append(self, writes):
        body = json.dumps(writes).encode() + b"\n"
        self.file.write(b"%08x " % zlib.crc32(body) + body)
        self.settle()

    def settle(self):
        self.file.flush()
        os.fsync(self.file.fileno())


class Service:
    def __init__(self, log):
        self.log = log
        self.table = {}
        for write in log.replay():
            self.apply(write)

    def apply(self, write):
        key, text = write
        if text is None:
            self.table.pop(key, None)
        else:
            self.table[key] = text

    def commit(self, writes):
        if writes:
            self.log.append(writes)
        for write in writes:
            self.apply(write)
        return {"ok": True}

    def answer(self, request):
        if not isinstance(request, dict):
            raise Refused
        handler = {"get": self.get, "cas": self.cas, "batch": self.batch}.get(request.get("op"))
        return handler(request) if handler else self.commit([self.write(request)])

    def key(self, request):
        key = request.get("key")
        if not isinstance(key, str):
            raise Refused
        return key

    def field(self, request, name):
        if name not in request:
            raise Refused
        return text_of(request[name])

    def write(self, request):
        """Read a put or a delete, changing nothing."""
        if not isinstance(request, dict) or request.get("op") not in ("put", "delete"):
            raise Refused
        key = self.key(request)
        if request["op"] == "delete":
            return [key, None]
        return [key, self.field(request, "value")]

    def get(self, request):
        text = self.table.get(self.key(request))
        if text is None:
            return {"ok": True, "found": False}
        return {"ok": True, "found": True, "value": json.loads(text)}

    def cas(self, request):
        key, expected, text = self.key(request), self.field(request, "expected"), self.field(request, "value")
        if key not in self.table or not self.matches(self.table[key], expected):
            return {"ok": True, "swapped": False}
        self.commit([[key, text]])
        return {"ok": True, "swapped": True}

    def matches(self, text, expected):
        return text == expected

    def batch(self, request):
        operations = request.get("operations")
        if not isinstance(operations, list):
            raise Refused
        return self.commit([self.write(operation) for operation in operations])


def main(path):
    service = Service(Log(path))
    for line in sys.stdin:
        try:
            response = service.answer(json.loads(line))
        except (Refused, TypeError):  # TypeError: an "op" that cannot be looked up
            response = REFUSED
        print(json.dumps(response), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
