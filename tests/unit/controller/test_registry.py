"""Who is told of a change of a pod: the run's task, or, when nobody plays the run, those that share its slots."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock, create_autospec

from casewarden.controller.registry import Registry
from casewarden.controller.slots import Slots


def a_registry() -> tuple[Registry, Mock]:
    slots = create_autospec(Slots, instance=True)
    return Registry(SimpleNamespace(slots=slots)), slots  # type: ignore[arg-type]


def test_a_change_of_a_pod_whose_run_nobody_plays_is_told_to_the_slots() -> None:
    registry, slots = a_registry()
    registry.wake("a run that has ended")
    slots.pods_changed.assert_called_once_with()


def test_the_end_of_an_audit_is_no_change_of_pods() -> None:
    registry, slots = a_registry()
    registry.wake_all()
    slots.pods_changed.assert_not_called()
