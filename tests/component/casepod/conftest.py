"""What the recorder's tests share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder with a path short enough for unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix="cwt-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
