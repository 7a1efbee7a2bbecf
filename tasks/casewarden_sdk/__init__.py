"""What a task pack imports: the contract, the runtime of its driver, and the errors that say who is to blame.

Names are loaded when they are first used, because a task container starts for every case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "AGENT_ERROR",
    "ENVIRONMENT_ERROR",
    "FAILED",
    "JSON",
    "PASSED",
    "CandidateError",
    "Case",
    "ContractError",
    "Control",
    "Ended",
    "Environment",
    "EnvironmentFailure",
    "Executed",
    "Limits",
    "Pack",
    "Process",
    "Runtime",
    "Verdict",
    "canonical",
    "canonical_equal",
    "sha256_json",
]

if TYPE_CHECKING:
    from .canonical import canonical, canonical_equal, sha256_json
    from .contract import (
        AGENT_ERROR,
        ENVIRONMENT_ERROR,
        FAILED,
        JSON,
        PASSED,
        Case,
        Control,
        Limits,
        Pack,
        Verdict,
    )
    from .environment import Environment, Executed
    from .errors import CandidateError, ContractError, EnvironmentFailure
    from .runtime import Ended, Process, Runtime

_HOMES = {
    "canonical": ("canonical", "canonical_equal", "sha256_json"),
    "environment": ("Environment", "Executed"),
    "errors": ("CandidateError", "ContractError", "EnvironmentFailure"),
    "runtime": ("Ended", "Process", "Runtime"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module("." + _MODULE_OF.get(name, "contract"), __name__), name)
    globals()[name] = value
    return value
