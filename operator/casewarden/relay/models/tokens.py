"""Counting tokens as the model does: by the ``tokenizer.json`` that an administrator gives for an endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["Count", "TokenizerUnreadable", "counter_of"]

Count = Callable[[str], int]
_FILE_BYTES = 64 << 20


class TokenizerUnreadable(Exception):
    """The file is none, or is not there; the message names the field and the file."""


def counter_of(path: str) -> Count:
    """Return what counts the tokens of a text by the tokenizer in a file, which is read now."""
    where = f"tokenizer: {path}"
    try:
        with open(path, "rb") as file:
            data = file.read(_FILE_BYTES + 1)
    except OSError as error:
        raise TokenizerUnreadable(f"{where}: {error.strerror}; mount the model's tokenizer.json there") from None
    if len(data) > _FILE_BYTES:
        raise TokenizerUnreadable(f"{where}: is over {_FILE_BYTES} bytes; give the model's tokenizer.json")
    # Only where an endpoint has one: it is a library of its own.
    from tokenizers import Tokenizer

    try:
        json.loads(data)
        tokenizer: Any = Tokenizer.from_buffer(data)
    except Exception as error:
        raise TokenizerUnreadable(f"{where}: is no tokenizer.json: {error}") from None

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return count
