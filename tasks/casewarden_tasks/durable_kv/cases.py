"""The fifteen cases of one seed.

A seed draws keys and values; the situations are the same for every seed, so a case's id is its family. The draws come
in a fixed order (two keys, one number, then the long random session), because the content is part of this version: the
same seed gives the same bytes for ever.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from casewarden_sdk.contract import Case

__all__ = ["generate"]

Request = Any
Session = dict[str, Any]
_RANDOM_OPERATIONS: Final = 48


def _put(key: object, value: object) -> Request:
    return {"op": "put", "key": key, "value": value}


def _get(key: object) -> Request:
    return {"op": "get", "key": key}


def _delete(key: object) -> Request:
    return {"op": "delete", "key": key}


def _cas(key: object, expected: object, value: object) -> Request:
    return {"op": "cas", "key": key, "expected": expected, "value": value}


def _batch(*operations: Request) -> Request:
    return {"op": "batch", "operations": list(operations)}


def _ended(*requests: Request) -> Session:
    """Return a session that ends with the end of its input."""
    return {"requests": list(requests), "stop": "eof"}


def _killed(*requests: Request) -> Session:
    """Return a session that ends with SIGKILL, right after its last answer."""
    return {"requests": list(requests), "stop": "kill"}


def generate(seed: int) -> list[Case]:
    """Return the cases of ``seed``, always in the same order."""
    draw = random.Random(seed)  # noqa: S311 - repeatable draws are the point
    key = f"客户/{draw.getrandbits(64):016x}"
    other = f"second-{draw.getrandbits(64):016x}"
    value = {"version": draw.randrange(1, 10_000), "items": [True, None, "λ\n世界"]}
    situations: list[tuple[str, str, list[Session]]] = [
        *_reads_and_rejections(key, value),
        *_transactions_and_swaps(key, other, value),
        *_restarts_and_kills(key, other, value),
        ("seeded-state-machine", "basic", [_ended(*_random_walk(draw, (key, other, "", "雪"), value))]),
    ]
    return [
        Case(name, (dimension,), {"id": name, "dimension": dimension, "sessions": sessions})
        for name, dimension, sessions in situations
    ]


def _reads_and_rejections(key: str, value: object) -> list[tuple[str, str, list[Session]]]:
    put, get, delete = _put(key, value), _get(key), _delete(key)
    stored: list[object] = [None, False, 0, "", [], {}, "a" * 4096, value]
    overwrites = [request for item in stored for request in (_put(key, item), get)]
    refused: list[Request] = [
        None,
        [],
        {"op": "wat"},
        _put(5, "bad"),
        {"op": "put", "key": key},
        {"op": "cas", "key": key, "value": "bad"},
        _get([]),
        _delete({}),
    ]
    return [
        ("read-write-delete", "basic", [_ended(get, put, get, delete, get, delete)]),
        ("json-types-and-overwrite", "basic", [_ended(*overwrites)]),
        ("reject-and-continue", "validation", [_ended(put, *refused, get)]),
        ("empty-and-unicode-keys", "validation", [_ended(_put("", value), _get(""), put, get)]),
    ]


def _transactions_and_swaps(key: str, other: str, value: object) -> list[tuple[str, str, list[Session]]]:
    put, get, delete = _put(key, value), _get(key), _delete(key)
    committed = _ended(_batch(put, _put(other, 17), delete), get, _get(other), _batch())
    rolled_back = _ended(
        put,
        _batch(_put(key, "must roll back"), {"op": "put", "key": other}),
        get,
        _get(other),
        _batch(delete, _batch()),
        get,
        {"op": "batch", "operations": "invalid"},
    )
    swapped = _ended(put, _cas(key, "wrong", 12), get, _cas(key, value, 13), get, _cas(other, None, 10), _get(other))
    typed = _ended(_put(key, True), _cas(key, 1, "incorrect"), get, _cas(key, True, None), get)
    return [
        ("commit-batch", "transactions", [committed]),
        ("rollback-batch", "transactions", [rolled_back]),
        ("cas-match-and-mismatch", "compare_swap", [swapped]),
        ("cas-type-sensitivity", "compare_swap", [typed]),
    ]


def _restarts_and_kills(key: str, other: str, value: object) -> list[tuple[str, str, list[Session]]]:
    put, get, delete = _put(key, value), _get(key), _delete(key)
    pair = _batch(put, _put(other, value))
    read_pair = _ended(get, _get(other))
    return [
        ("restart-preserves-acknowledged-write", "persistence", [_ended(put), _ended(get, delete), _ended(get)]),
        ("restart-preserves-transaction", "persistence", [_ended(pair), read_pair]),
        ("sigkill-after-acknowledgement", "crash_recovery", [_killed(put), _ended(get)]),
        ("sigkill-after-atomic-batch", "crash_recovery", [_killed(pair), read_pair]),
        ("restart-preserves-cas", "persistence", [_ended(put, _cas(key, value, 321)), _ended(get)]),
        ("sigkill-after-delete", "crash_recovery", [_ended(put), _killed(delete), _ended(get)]),
    ]


def _random_walk(draw: random.Random, keys: tuple[str, ...], value: object) -> list[Request]:
    """Return random requests over a few keys, then a read of each key."""
    make: Mapping[str, Callable[[str], Request]] = {
        "put": lambda key: _put(key, draw.choice([None, True, draw.randrange(1000), value])),
        "get": _get,
        "delete": _delete,
    }
    walk: list[Request] = []
    for _ in range(_RANDOM_OPERATIONS):
        key = draw.choice(keys)
        walk.append(make[draw.choice(("put", "get", "delete"))](key))
    return walk + [_get(key) for key in keys]
