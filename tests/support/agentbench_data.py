"""AgentBench's own dev data, which is not in the tree: ``AGENTBENCH_DATA`` names a checkout of it."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

__all__ = ["DATA", "packed"]

DATA = Path(os.environ["AGENTBENCH_DATA"]).resolve() if os.environ.get("AGENTBENCH_DATA") else None
"""None where there is none: then what needs it is not collected."""


def packed(*folders: str) -> bytes:
    """Return folders of the data as a tar.xz, paths below the checkout, the same bytes every time."""
    assert DATA is not None
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
        for folder in folders:
            for path in sorted((DATA / folder).rglob("*")):
                if path.is_file():
                    member = tarfile.TarInfo(path.relative_to(DATA).as_posix())
                    member.size = path.stat().st_size
                    archive.addfile(member, io.BytesIO(path.read_bytes()))
    return buffer.getvalue()
