"""Bringing images up to date, and telling which builds there are."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from devkit import images
from devkit.engines import Engine
from devkit.settings import cache_root
from devkit.shell import say


class Built(TypedDict):
    key: str
    digest: str
    engine: str


def _record_file(engine: Engine) -> Path:
    return cache_root() / "images" / f"built-{engine.name}.json"


def recorded(engine: Engine) -> dict[str, Built]:
    try:
        found: dict[str, Built] = json.loads(_record_file(engine).read_text())
    except (OSError, ValueError):
        return {}
    return found


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    lock = cache_root() / "images" / "lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(names: list[str], engine: Engine) -> dict[str, Built]:
    """Build those images, and what they stand on, whose sources have changed; what there is of each."""
    done: dict[str, Built] = {}
    with _one_at_a_time():
        builds = recorded(engine)
        for image in images.chosen(names):
            if engine.pulls(image):
                done[image.name] = {"key": engine.name_of(image), "digest": "", "engine": engine.name}
                continue
            folder = images.stage(image)
            base = images.IMAGES[image.base] if image.base is not None else None
            key = images.key(image, folder, done[base.name]["key"] if base else "", engine.name)
            before = builds.get(image.name)
            if before is not None and before["key"] == key and engine.has(image, before["digest"]):
                done[image.name] = before
                continue
            log = cache_root() / "images" / f"{image.name}.log"
            log.unlink(missing_ok=True)
            began = time.monotonic()
            images.complete(folder)
            digest = engine.build(image, folder, engine.name_of(base) if base else None, log)
            say(f"  built {image.tag} ({time.monotonic() - began:.1f} s)")
            done[image.name] = {"key": key, "digest": digest, "engine": engine.name}
            builds = {**builds, image.name: done[image.name]}
            record = _record_file(engine)
            temporary = record.with_suffix(".new")
            temporary.write_text(json.dumps(builds, indent=1))
            temporary.replace(record)
    return done
