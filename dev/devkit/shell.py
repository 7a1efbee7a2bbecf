"""Running programs and waiting for things, each with a limit."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from devkit.errors import DevError, tail

POLL = 0.05  # seconds between two looks at something awaited


def say(text: str) -> None:
    """Tell the user; standard output is left to results."""
    print(text, file=sys.stderr, flush=True)


class Step:
    """Says what is being done, and how long it took when it took long enough to matter."""

    def __init__(self, text: str, quiet_below: float = 0.3) -> None:
        self.text, self.quiet_below = text, quiet_below

    def __enter__(self) -> None:
        self.began = time.monotonic()

    def __exit__(self, kind: object, *_: object) -> None:
        took = time.monotonic() - self.began
        if kind is None and took >= self.quiet_below:
            say(f"  {self.text} ({took:.1f} s)")


def run(
    argv: Sequence[object],
    *,
    what: str,
    log: Path | None = None,
    seconds: float = 600,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
) -> str:
    """Run a program and return its standard output; with `log`, both outputs go there and "" is returned.

    Raises DevError with the program's last words when it fails, is missing, or takes longer than `seconds`.
    """
    words = [str(word) for word in argv]
    try:
        if log is None:
            done = subprocess.run(
                words, env=env, cwd=cwd, input=stdin, timeout=seconds, capture_output=True, text=True, check=False
            )
        else:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                done = subprocess.run(
                    words,
                    env=env,
                    cwd=cwd,
                    input=stdin,
                    timeout=seconds,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
    except FileNotFoundError as error:
        raise DevError(f"{what}: {words[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise DevError(f"{what}: not done after {seconds:.0f} s" + (f"; see {log}" if log else "")) from error
    if done.returncode != 0:
        spoken = (done.stderr or done.stdout or "").splitlines()[-15:]
        last_words = tail(log) if log else "\n".join(f"    {line}" for line in spoken)
        where = f"; see {log}" if log else ""
        raise DevError(f"{what}: {words[0]} exited {done.returncode}{where}\n{last_words}")
    return done.stdout or ""


def succeeds(argv: Sequence[object], seconds: float = 30) -> bool:
    """Whether a program is there and exits 0."""
    try:
        return subprocess.run([str(x) for x in argv], capture_output=True, timeout=seconds, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def wait_until(
    probe: Callable[[], object], *, seconds: float, what: str, log: Path | None = None, detail: Callable[[], str] = str
) -> None:
    """Wait until `probe` answers something true. Raises DevError after `seconds`, with `detail` and the log's end."""
    limit = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > limit:
            said = detail()
            raise DevError(
                f"{what}: not there after {seconds:.0f} s"
                + (f" ({said})" if said else "")
                + (f"; see {log}\n{tail(log)}" if log else "")
            )
        time.sleep(POLL)
