"""A tokenizer of a few words, as a model's file has it."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers

__all__ = ["a_tokenizer"]


def a_tokenizer(path: Path) -> str:
    """Write a tokenizer that makes a token of each word, and return the file's name."""
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "hello": 1, "there": 2}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.save(str(path))
    return str(path)
