"""The hash of a table, by which a change to it is judged: order of rows does not count, NULL cells do not show.

The database computes it (``hash_query``), since what an agent has put into a table may be large; ``table_hash`` is the
same function over rows at hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

__all__ = ["hash_query", "quoted", "table_hash"]


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return "`" + name.replace("`", "``") + "`"


def hash_query(table: str, columns: Sequence[str]) -> str:
    """Return the statement whose one cell is the table's hash; NULL for a table without rows."""
    cells = ", ".join(quoted(name) for name in columns)
    rows = f"SELECT SUBSTRING(MD5(CONCAT_WS(',', {cells})), 1, 5) AS rowhash FROM {quoted(table)}"  # noqa: S608
    return f"SELECT MD5(GROUP_CONCAT(rowhash ORDER BY rowhash)) AS hash FROM ({rows}) AS sub"  # noqa: S608


def table_hash(rows: Iterable[Sequence[str | None]]) -> str | None:
    """Return what ``hash_query`` gives for ``rows``, whose cells are texts."""
    row_hashes = sorted(_md5(",".join(cell for cell in row if cell is not None))[:5] for row in rows)
    return _md5(",".join(row_hashes)) if row_hashes else None


def _md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8"), usedforsecurity=False).hexdigest()
