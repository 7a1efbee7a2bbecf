"""A pack whose agent acts upon an environment container: it says a shell command, and the driver carries it out there.

It imports the SDK alone, so that a test can hand it to a task image as it stands.
"""

from __future__ import annotations

from typing import Any, ClassVar

from casewarden_sdk.contract import Case, Control, Limits, Verdict

REFERENCE = "import json\nprint(json.dumps('tr a-z A-Z < /tmp/in > /tmp/out; exit 3'), flush=True)\ninput()\n"
THINKS = "import time\ntime.sleep(10)\n" + REFERENCE
# The shim is the container's first process, has the same user and ends at SIGTERM.
KILLER = "import json\nprint(json.dumps('kill -TERM 1; sleep 20'), flush=True)\ninput()\n"
GIVEN = b"shout\n"


class SandboxPack:
    """Wants a file of the environment in capitals."""

    id = "sandbox"
    version = "0.1.0"
    description = "Shouts"
    contract = "Say one JSON text: a shell command that writes /tmp/in in capitals to /tmp/out and exits with 3."
    dimensions: ClassVar = {"shout": "1"}
    protocol = "jsonl"
    candidates = ("program",)
    aggregation = "weighted-dimensions/v1"
    limits = Limits(case_seconds=60, response_seconds=20)
    default_argv = ("{python}", "-I", "main.py")
    sources = (__file__,)
    exclusions: ClassVar[dict[str, str]] = {}
    controls = (
        Control("reference", "reference", {"main.py": REFERENCE}),
        Control("killer", "fault", {"main.py": KILLER}, target="shout", protocol_fault=True),
    )
    kinds: ClassVar = {
        "default": {
            "candidate": {"image": "python"},
            "environments": [{"name": "shell", "image": "python", "profile": "restricted", "memory_mib": 64}],
        }
    }

    def cases(self, seed: int, params: Any) -> list[Case]:
        """One case."""
        return [Case("capitals", ("shout",), {"id": "capitals"})]

    async def drive(self, case: Case, runtime: Any) -> Any:
        """Put the file, let the agent's command run, get what it made."""
        shell = await runtime.environment("shell")
        who = await shell.exec(["id", "-u"])
        await shell.put("/tmp/in", GIVEN)
        async with await runtime.start() as process:
            command = await process.receive()
            done = await shell.exec(["/bin/sh", "-c", command], seconds=30, agent=True)
        made = await shell.get("/tmp/out", agent=True)
        swept = await shell.sweep()
        return {"uid": int(who.stdout), "code": done.code, "made": made.decode(), "left": swept.left}

    def grade(self, case: Case, record: Any) -> Verdict:
        """Compare."""
        right = (record["code"], record["made"], record["left"]) == (3, GIVEN.decode().upper(), 0)
        return Verdict.assessed(case, {"shout": right}, None if right else f"got {record!r}")


PACK = SandboxPack()
