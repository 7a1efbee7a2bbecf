"""AgentBench's own checkout as a data set: as a folder, and as an archive."""

from __future__ import annotations

import json

from support.agentbench_data import DATA, packed

from casewarden_sdk.agentbench.dataset import VARIABLE, open_dataset

ROWS = "data/dbbench/dev.jsonl"


def test_a_checkout_and_an_archive_of_it_have_the_same_rows(tmp_path):
    archive = tmp_path / "agentbench.tar.xz"
    archive.write_bytes(packed("data/dbbench"))
    known = {"checkout": {"path": str(DATA)}, "archive": {"path": str(archive)}}
    read = [
        open_dataset({"dataset": name}, {VARIABLE: json.dumps(known)}).read(ROWS)  # type: ignore[union-attr]
        for name in known
    ]
    assert read[0] == read[1]
    assert len(read[0].splitlines()) == 60
