"""One parallelism over all runs of an audit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from casewarden.controller.audit_share import AuditShare


def test_a_run_gets_what_the_others_leave() -> None:
    share = AuditShare(lambda uid: None)
    assert share.reserve("a", 4) == 4
    assert share.reserve("b", 4) == 0
    share.settle("a", 3)
    assert share.reserve("b", 4) == 1


def test_places_that_pods_hold_from_before_count_from_the_beginning() -> None:
    assert AuditShare(lambda uid: None, {"a": 3}).reserve("b", 4) == 1


def test_a_run_that_got_too_little_is_woken_when_a_place_is_free_and_others_are_not() -> None:
    woken: list[str] = []
    share = AuditShare(woken.append)
    share.reserve("a", 2)
    share.settle("a", 2)
    share.reserve("b", 2)
    share.settle("b", 0)
    assert woken == []
    share.settle("a", 1)
    assert woken == ["b"]
    share.release("a")
    assert woken[-1] == "b"
    assert "a" not in woken


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.booleans()), max_size=40), st.integers(1, 5))
def test_all_together_never_hold_more_than_there_is(moves: list[tuple[str, int, bool]], width: int) -> None:
    share, used = AuditShare(lambda uid: None), dict.fromkeys("abc", 0)
    for uid, wanted, ends in moves:
        allowed = share.reserve(uid, width)
        used[uid] = 0 if ends else min(wanted, allowed)
        share.release(uid) if ends else share.settle(uid, used[uid])
        assert sum(used.values()) <= width
