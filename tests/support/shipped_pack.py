"""A pack of the tests as a task of a cluster's catalogue: the task image has no such pack, so its command brings it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

__all__ = ["command_of"]

# What it is graded by is still a file of its own.
_BOOT = """\
import base64, pathlib, sys, zlib
pathlib.Path("/tmp/{name}.py").write_bytes(zlib.decompress(base64.b64decode({source!r})))
sys.path.insert(0, "/tmp")
from casewarden_sdk.__main__ import main
sys.exit(main(["{name}:PACK", *sys.argv[1:]]))
"""


def command_of(module: ModuleType, change: Callable[[bytes], bytes] = lambda source: source) -> list[str]:
    """Return the command of a task image that writes the module, whose ``PACK`` imports the SDK alone, and plays it.

    ``change`` makes another version of its source.
    """
    source = base64.b64encode(zlib.compress(change(Path(str(module.__file__)).read_bytes()))).decode()
    name = module.__name__.rpartition(".")[2]
    return ["python3", "-B", "-c", _BOOT.format(name=name, source=source)]
