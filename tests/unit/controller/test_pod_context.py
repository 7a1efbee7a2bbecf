"""Images are pinned to what ran where a registry knows it, and only there."""

from __future__ import annotations

import pytest

from casewarden.controller.pod_context import pinned

DIGEST = "sha256:" + "1" * 64


@pytest.mark.parametrize(
    ("reference", "image_id", "expected"),
    [
        ("registry.example/team/x:1", f"registry.example/team/x@{DIGEST}", f"registry.example/team/x@{DIGEST}"),
        ("registry.example:5000/x:1", f"registry.example:5000/x@{DIGEST}", f"registry.example:5000/x@{DIGEST}"),
        ("x:1", f"docker.io/library/x@{DIGEST}", f"x@{DIGEST}"),
        ("team/x", f"docker.io/team/x@{DIGEST}", f"team/x@{DIGEST}"),
        ("x:1", f"docker-pullable://x@{DIGEST}", f"x@{DIGEST}"),
        ("x:1", DIGEST, "x:1"),
        ("x:1", "", "x:1"),
        ("x:1", f"registry.example/mirror/x@{DIGEST}", "x:1"),
        (f"x@sha256:{'2' * 64}", f"docker.io/library/x@{DIGEST}", f"x@sha256:{'2' * 64}"),
    ],
)
def test_a_reference_is_pinned(reference: str, image_id: str, expected: str) -> None:
    assert pinned(reference, image_id) == expected
