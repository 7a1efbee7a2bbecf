"""Process 1 of a cluster: sets its namespaces up, starts the units as their gates open, and keeps them running.

Everything that the cluster runs is below this process, in its process, mount and network namespaces. When it dies, for
whatever reason, the kernel ends all of it: no shim, mount, interface or firewall rule is left to be found and cleared.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devkit.api import Api, ApiError

TICK = 0.05  # seconds between two looks at children and gates
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds before a unit that ended is started again; doubled each time
STEADY = 30.0  # seconds after which a unit's pause starts from the beginning again


@dataclass
class Kept:
    """A unit, and what has become of it so far."""

    name: str
    argv: list[str]
    gates: list[str]
    env: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    started_at: float = 0.0
    not_before: float = 0.0
    pause: float = FIRST_PAUSE
    last_code: int | None = None
    extra: bool = False


@dataclass
class Init:
    root: Path
    node: str
    api: Api
    units: list[Kept]
    ending: bool = False
    open_gates: set[str] = field(default_factory=set)

    @property
    def run_folder(self) -> Path:
        return self.root / "run"

    def gate_is_open(self, gate: str) -> bool:
        """Look at a gate; one that was open once stays open, since units are to be restarted at once."""
        if gate in self.open_gates:
            return True
        kind, _, rest = gate.partition(":")
        try:
            if kind == "file":
                opened = (self.run_folder / rest).exists()
            elif kind == "socket":
                with socket.socket(socket.AF_UNIX) as tried:
                    tried.connect(rest)
                opened = True
            elif kind == "tcp":
                host, _, port = rest.rpartition(":")
                socket.create_connection((host, int(port)), timeout=1).close()
                opened = True
            else:
                self.api.raw("GET", rest)
                opened = True
        except (OSError, ApiError):
            opened = False
        if opened:
            self.open_gates.add(gate)
        return opened

    def start(self, unit: Kept, now: float) -> None:
        with (self.root / "log" / f"{unit.name}.log").open("ab") as log:
            unit.process = subprocess.Popen(
                unit.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **unit.env},
            )
        unit.starts += 1
        unit.started_at = now

    def reap(self, now: float) -> bool:
        """Collect whatever has ended, orphans of the pods included; whether a unit was among it."""
        changed = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return changed
            if pid == 0:
                return changed
            for unit in self.units:
                if unit.process is not None and unit.process.pid == pid:
                    unit.last_code = os.waitstatus_to_exitcode(status)
                    unit.process.returncode = unit.last_code
                    unit.process = None
                    if now - unit.started_at > STEADY:
                        unit.pause = FIRST_PAUSE
                    unit.not_before = now + unit.pause
                    unit.pause = min(2 * unit.pause, LONGEST_PAUSE)
                    print(f"{unit.name} ended: {unit.last_code}; again in {unit.not_before - now:.1f} s", flush=True)
                    changed = True

    def follow_extras(self) -> bool:
        """Take in units whose file has come into `run/extra`, and end those whose file has gone; whether any did."""
        files = {file.stem: file for file in (self.run_folder / "extra").glob("*.json")}
        have = {unit.name for unit in self.units if unit.extra}
        for name in files.keys() - have:
            unit = json.loads(files[name].read_text())
            self.units.append(Kept(name, unit["argv"], unit["gates"], unit["env"], extra=True))
        gone = [unit for unit in self.units if unit.extra and unit.name not in files]
        for unit in gone:
            self.units.remove(unit)
            if unit.process is not None:
                unit.process.kill()
                unit.process.wait(10)
        return bool(gone) or bool(files.keys() - have)

    def write_status(self) -> None:
        """Tell those outside, in one piece."""
        status = {
            unit.name: {
                "running": unit.process is not None,
                "restarts": max(0, unit.starts - 1),
                "last_code": unit.last_code,
                "waits_for": [gate for gate in unit.gates if gate not in self.open_gates],
            }
            for unit in self.units
        }
        temporary = self.run_folder / "status.json.new"
        temporary.write_text(json.dumps(status, indent=1))
        temporary.replace(self.run_folder / "status.json")

    def turn(self, now: float) -> None:
        """One look at everything."""
        changed = self.reap(now)
        changed = self.follow_extras() or changed
        due = [unit for unit in self.units if unit.process is None and now >= unit.not_before]
        looked_at = {gate: self.gate_is_open(gate) for unit in due for gate in unit.gates}
        for unit in due:
            if all(looked_at[gate] for gate in unit.gates):
                self.start(unit, now)
                changed = True
        if changed:
            self.write_status()


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def private_folders(run_folder: Path) -> None:
    """Give the cluster its own of each folder that programs insist on, so that the machine's stay as they are."""
    mount("--make-rprivate", "/")
    mount("-t", "proc", "proc", "/proc")
    for folder, size in (("/run", "256m"), ("/var/log", "64m")):
        mount("-t", "tmpfs", "-o", f"mode=755,size={size}", "tmpfs", folder)
    Path("/run/lock").mkdir()
    # Over /var/lib itself: to mount over a folder in it would need that folder on the machine.
    kubelet, cni = run_folder / "kubelet", run_folder / "cni-state"
    for folder_made in (kubelet, cni):
        folder_made.mkdir(exist_ok=True)
    upper, work = run_folder / "var-lib", run_folder / "var-lib-work"
    for folder_made in (upper, work):
        folder_made.mkdir(exist_ok=True)
    mount("-t", "overlay", "-o", f"lowerdir=/var/lib,upperdir={upper},workdir={work}", "overlay", "/var/lib")
    for target, source in (("/var/lib/kubelet", kubelet), ("/var/lib/cni", cni)):
        Path(target).mkdir(exist_ok=True)
        mount("--bind", str(source), target)
    # Pods' volumes are mounted by the kubelet and have to be seen by containerd, and below.
    mount("--make-rshared", "/")


def clear_stores(root: Path, containerd: str, log_name: str = "containerd-stores") -> None:
    """Drop the containers of a former run from containerd's store; the images stay."""
    run_folder = root / "run"
    done = run_folder / "stores-cleared"
    database = root / "containerd" / "io.containerd.metadata.v1.bolt" / "meta.db"
    if not database.exists():
        done.touch()
        return
    socket_path = run_folder / "containerd.sock"
    ctr = ["ctr", "--address", str(socket_path), "--namespace", "k8s.io"]
    with (root / "log" / f"{log_name}.log").open("ab") as log:
        daemon = subprocess.Popen(
            [containerd, "--config", str(run_folder / "containerd-stores.toml")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            limit = time.monotonic() + 20
            while subprocess.run([*ctr, "version"], capture_output=True, check=False, timeout=20).returncode != 0:
                if time.monotonic() > limit or daemon.poll() is not None:
                    raise RuntimeError(f"containerd does not come up over {root / 'containerd'}")
                time.sleep(TICK)
            listed = subprocess.run(
                [*ctr, "containers", "list", "--quiet"], capture_output=True, check=True, text=True, timeout=30
            ).stdout.split()
            if listed:
                subprocess.run([*ctr, "containers", "delete", *listed], check=True, stdout=log, stderr=log, timeout=120)
        finally:
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait(10)
    socket_path.unlink(missing_ok=True)
    cri = root / "containerd" / "io.containerd.grpc.v1.cri"
    subprocess.run(["rm", "-rf", str(cri)], check=True)
    done.touch()


def main(specification: str) -> None:
    given: dict[str, Any] = json.loads(Path(specification).read_text())
    root = Path(given["root"])
    private_folders(root / "run")
    socket.sethostname(given["node"])
    kept = [Kept(unit["name"], unit["argv"], unit["gates"], unit["env"]) for unit in given["units"]]
    init = Init(root, given["node"], Api(given["api"], root / "pki", seconds=1), kept)

    def end(*_: object) -> None:
        init.ending = True

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    init.write_status()
    (root / "run" / "namespaces").touch()
    containerd = next(unit.argv[0] for unit in kept if unit.name == "containerd")
    clearing = os.fork()
    if clearing == 0:
        clear_stores(root, containerd)
        os._exit(0)
    # The end of this process is the end of the cluster: the kernel kills what is below it.
    while not init.ending:
        init.turn(time.monotonic())
        time.sleep(TICK)


if __name__ == "__main__":
    main(sys.argv[1])
