"""Packs that are installed beside the command."""

from __future__ import annotations

import importlib
from typing import cast

from casewarden.cli.failure import Failure
from casewarden.local.planning import pack_of
from casewarden_sdk.contract import Pack

__all__ = ["load_pack"]


def load_pack(name: str) -> Pack:
    """Import a task's pack by its name, or by ``MODULE:PACK``."""
    module, _, attribute = pack_of(name).partition(":")
    try:
        return cast(Pack, getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise Failure(f"the pack of task {name!r} is not installed here ({error}); give --pack MODULE:PACK") from None
