# What every hostile program starts with: it says on stderr what it tried (TRIED), what it read (READ) and what it must
# never be able to say (GOT). Stderr is part of the evidence, so the judge reads it there.
import ctypes, errno, glob, json, mmap, os, platform, resource, signal, socket, struct, subprocess, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)


def say(*words):
    os.write(2, (" ".join(str(word) for word in words).replace("\n", " ")[:3000] + "\n").encode("utf-8", "replace"))


def attempt(what, call, won=lambda answer: True):
    try:
        answer = call()
    except BaseException as error:
        say("TRIED", what, "->", type(error).__name__, error)
        return None
    if won(answer):
        say("GOT", what, repr(answer)[:200])
    say("TRIED", what, "-> answered")
    return answer


def show(what, path, size=3000):
    try:
        with open(path, "rb") as file:
            say("READ", what, file.read(size).decode("utf-8", "replace").replace("\0", " "))
        return True
    except OSError as error:
        say("TRIED", what, path, "->", errno.errorcode.get(error.errno, error.errno))
        return False


def write(path, data):
    # Unbuffered: a refusal must not wait for the file to be closed.
    with open(path, "wb", buffering=0) as file:
        return file.write(data)


def syscall(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def observe():
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    return json.loads(line)


def answer(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def raw(data):
    os.write(1, data)


def finish(message="done", code=0):
    answer({"finish": True, "message": message})
    sys.stdin.read()
    os._exit(code)


