"""The containers of a sample: the sandbox that the agent acts in, and its twin, which the agent never reaches.

The twin is prepared in the same way, and the reference commands run there, so that nothing which the agent did to its
own system answers for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from casewarden_sdk.environment import Environment, Executed, FileStat
from casewarden_sdk.errors import EnvironmentFailure

from .shell import Shell

__all__ = ["WATCHED", "prepare", "replaced", "run_script", "watch"]

SCRIPT_SECONDS: Final = 60.0
OUTPUT: Final = 100_000  # characters of a step's output that the next one is given; an argument holds 128 KiB
_COMPILED: Final = (
    'd=$(mktemp -d) && cat > "$d/program.$EXT" && "$CC" -o "$d/program" "$d/program.$EXT" && exec "$d/program" "$@"'
)
# Where the sandbox's own programs are, in the order of PATH, and what else decides what they do.
_PATH: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_PRELOAD: Final = "/etc/ld.so.preload"
WATCHED: Final = (*_PATH, "/lib", "/lib64", "/usr/lib", "/usr/local/lib", _PRELOAD)
# What every Python runs before what it was asked to.
_STARTING: Final = re.compile(r".*/(?:sitecustomize\.py|usercustomize\.py|[^/]*\.pth)\Z")


async def prepare(environment: Environment, sample: Mapping[str, Any]) -> Shell:
    """Run the sample's ``init`` and ``start`` and return the shell; ``EnvironmentFailure`` where that fails."""
    for number, script in enumerate(sample["init"]):
        done = await run_script(environment, script, (), agent=False)
        if done.code != 0:
            end = (
                "took too long"
                if done.timed_out
                else f"ended with {done.code if done.code is not None else 'a signal'}"
            )
            said = (done.stdout + done.stderr)[-300:].decode("utf-8", "replace")
            raise EnvironmentFailure("EnvironmentFailed", f"init script {number} of {environment.name} {end}: {said}")
    shell = await Shell.start(environment)
    if sample["start"] is not None:
        await shell.run(sample["start"])
    return shell


async def run_script(
    environment: Environment, script: Mapping[str, Any], params: Sequence[str], *, agent: bool
) -> Executed:
    """Run a script of the data to its end, beside the shell, with ``params`` as its arguments."""
    code, language = str(script["code"]), script["language"]
    variables, stdin = {"HOME": "/root", "USER": "root"}, b""
    if language == "bash":
        argv = ["/bin/bash", "-c", code, "--", *params]
    elif language == "python":
        argv = ["python3", "-c", code, *params]
    else:
        argv, stdin = ["/bin/bash", "-c", _COMPILED, "--", *params], code.encode("utf-8")
        variables.update({"CC": "gcc", "EXT": "c"} if language == "c" else {"CC": "g++", "EXT": "cc"})
    return await environment.exec(argv, stdin, SCRIPT_SECONDS, variables, agent=agent, max_bytes=4 << 20)


async def watch(environment: Environment, *, agent: bool = False) -> list[FileStat]:
    """Return what the sandbox's programs and libraries are now."""
    return await environment.stat(WATCHED, agent=agent)


def replaced(before: Sequence[FileStat], after: Sequence[FileStat]) -> list[str]:
    """Return the programs and libraries that are no longer what they were, sorted: changed, gone, or overshadowed.

    New files are no finding, since to make a command is what some problems ask for, unless one has the name of a
    program that PATH would have found in another folder, or has every program load it.
    """
    old, new = ({item.path: item for item in items if item.mode >> 12 != 4} for items in (before, after))
    names = {PurePosixPath(path).name for path in old if str(PurePosixPath(path).parent) in _PATH}
    found = {path for path, item in old.items() if new.get(path) != item}
    for path in new.keys() - old.keys():
        parent, name = str(PurePosixPath(path).parent), PurePosixPath(path).name
        if path == _PRELOAD or _STARTING.match(path) or (parent in _PATH and name in names):
            found.add(path)
    return sorted(found)


async def prepare_both(
    sandbox: Environment, twin: Environment | None, sample: Mapping[str, Any]
) -> tuple[Shell, Shell | None]:
    """Prepare the sandbox and, where there is one, its twin, at the same time."""
    if twin is None:
        return await prepare(sandbox, sample), None
    one, other = await asyncio.gather(prepare(sandbox, sample), prepare(twin, sample))
    return one, other
