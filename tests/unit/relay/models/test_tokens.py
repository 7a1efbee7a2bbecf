"""A model's own tokenizer, read from its file: what it counts, and what a file that is none is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tokenizers import a_tokenizer

from casewarden.relay.models.tokens import TokenizerUnreadable, counter_of


def test_the_models_own_tokens_are_counted(tmp_path: Path) -> None:
    count = counter_of(a_tokenizer(tmp_path / "tokenizer.json"))
    assert [count(text) for text in ("", "hello", "hello there hello", "hello unheard")] == [0, 1, 3, 2]


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "No such file or directory; mount"), ("{", "is no tokenizer"), ("{}", "is no tokenizer")],
)
def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path, text: str | None, why: str) -> None:
    file = tmp_path / "tokenizer.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(TokenizerUnreadable, match=why) as caught:
        counter_of(str(file))
    assert str(file) in str(caught.value)
