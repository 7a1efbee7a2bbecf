"""The agent's shell: one login shell of the sandbox, kept for the whole sample.

It reads its commands from a pipe and has no terminal, so nothing of what is sent comes back as an echo or a prompt. The
end of a command is told by a line that is sent behind it. Whatever reads the shell's input in its place (another user's
shell, after ``su``) carries that line out as well; what merely swallows it leaves the agent with silence, as in
AgentBench.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from typing import Final

from casewarden_sdk.environment import Environment
from casewarden_sdk.errors import CandidateError
from casewarden_sdk.running import Running

__all__ = ["Shell"]

SILENCE: Final = 5.0  # seconds without output after which a command is left to itself
PATIENCE: Final = 30.0  # seconds for a command in all
_OUTPUT: Final = 16 << 20  # bytes that a shell may write in a sample
_KEPT: Final = 1 << 16  # bytes of a command's output that can be told
# Both outputs in one, in the order of writing. Interactive, since another shell ends at the first slip of syntax.
_LOGIN: Final = ("/bin/bash", "-c", "exec /bin/bash --noediting --login -i 2>&1")
# What an interactive shell says to a terminal that is none, after a program that died of a signal.
_NOISE: Final = re.compile(rb"^bash: \[[0-9]+: [0-9]+ \([0-9]+\)\] tcsetattr: [^\n]*\n", re.MULTILINE)
_QUIET: Final = "PS1= PS2= PROMPT_COMMAND= HISTIGNORE='(casewarden=*'; set +H"
_ENVIRONMENT: Final = {"HOME": "/root", "USER": "root", "LOGNAME": "root", "TERM": "dumb", "SHELL": "/bin/bash"}


class Shell:
    """Made by ``start``. A shell that has ended, whoever ended it, is the agent's doing: it alone acts in it."""

    def __init__(self, program: Running) -> None:
        self._program = program
        self._number = 0
        self._output = bytearray()
        self._late: list[bytes] = []

    @classmethod
    async def start(cls, sandbox: Environment) -> Shell:
        """Start the shell, as root, in ``/``."""
        shell = cls(await sandbox.open(_LOGIN, env=_ENVIRONMENT, max_bytes=_OUTPUT))
        await shell.run(_QUIET, PATIENCE)
        return shell

    async def run(self, command: str, silence: float | None = None) -> bytes:
        """Carry a command out and return what it wrote, and what earlier ones wrote meanwhile.

        After ``silence`` seconds without output (5), or 30 s, what has come is returned, and the command goes on.
        ``CandidateError`` where the shell has ended (``SandboxKilled``) or has written over 16 MiB (``OutputLimit``).
        """
        self._number += 1
        first, second = f"{self._number:x}-{secrets.token_hex(4)}", secrets.token_hex(8)
        mark = f"{first}{second}\n".encode("ascii")
        # In two halves, so that the line does not look like what it prints; in a subshell, so that it changes nothing.
        behind = f"(casewarden=$?; printf '%s%s\\n' {first} {second}; exit $casewarden)\n"
        sending = asyncio.ensure_future(self._program.send(f"{command}\n{behind}".encode()))
        try:
            said = await self._until(mark, SILENCE if silence is None else silence)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        for late in self._late:
            said = said.replace(late, b"")
        return _NOISE.sub(b"", said)[:_KEPT]

    async def close(self) -> None:
        """End the shell; what it started in the background stays."""
        await self._program.close()

    async def _until(self, mark: bytes, silence: float) -> bytes:
        """Return what is written up to the mark, or up to silence."""
        until = time.monotonic() + PATIENCE
        while True:
            end = self._output.find(mark)
            if end >= 0:
                return self._taken(end, len(mark))
            left = until - time.monotonic()
            try:
                more = await self._program.receive(min(silence, max(left, 0.0)))
            except TimeoutError:
                more = b""
                if self._program.exit is None:
                    self._late.append(mark)
                    return self._taken(len(self._output), 0)
            if not more:
                raise await self._ended()
            self._output += more

    def _taken(self, end: int, behind: int) -> bytes:
        said = bytes(self._output[:end])
        del self._output[: end + behind]
        return said

    async def _ended(self) -> CandidateError:
        try:
            ended = await self._program.wait(SILENCE)
        except TimeoutError:
            return CandidateError("SandboxKilled", "the shell has closed its output")
        if ended.output_limit:
            return CandidateError("OutputLimit", f"the shell wrote more than {_OUTPUT} bytes")
        how = f"signal {ended.signal}" if ended.code is None else f"exit code {ended.code}"
        return CandidateError("SandboxKilled", f"the shell has ended: {how}")
