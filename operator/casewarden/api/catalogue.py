"""The catalogue: the tasks and images that an administrator lets runs use (``docs/internals/wire.md``, 7)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .common import ApiModel, Argument, Image, ShortName
from .endpoint import Endpoint

__all__ = ["Catalogue", "CataloguePool", "CataloguePools", "CatalogueTask"]


class CatalogueTask(ApiModel):
    """A task pack: its image and the command that answers ``plan`` and ``drive``."""

    image: Image
    command: Annotated[list[Argument], Field(max_length=64)] = Field(default_factory=list)
    """Empty means the image's own entry point."""


class CataloguePool(ApiModel):
    """A limit over all runs: how many case pods of the endpoint or the task there are at once."""

    concurrency: Annotated[int, Field(ge=0, le=100_000)]
    """0 lets no new case start; those that run go on."""


class CataloguePools(ApiModel):
    """Pools by the name of the endpoint or the task; one that is not named here has no limit."""

    agents: dict[ShortName, CataloguePool] = Field(default_factory=dict)
    tasks: dict[ShortName, CataloguePool] = Field(default_factory=dict)


class Catalogue(ApiModel):
    """What the operator's configuration file holds."""

    tasks: dict[ShortName, CatalogueTask] = Field(default_factory=dict)
    images: dict[ShortName, Image] = Field(default_factory=dict)
    allowed_task_images: list[str] = Field(default_factory=list)
    allow_baseline: list[ShortName] = Field(default_factory=list)
    endpoints: dict[ShortName, Endpoint] = Field(default_factory=dict)
    pools: CataloguePools = Field(default_factory=CataloguePools)
    evidence_image: Image = "casewarden-evidence:dev"
    relay_url: Annotated[str, Field(pattern=r"^https?://", max_length=512)] = (
        "http://casewarden-relay.casewarden-system.svc:8080"
    )

    @model_validator(mode="after")
    def _pools_are_of_something(self) -> Self:
        """A limit of a misspelt name would hold nobody back, and nobody would notice."""
        for side, what, names in (("agents", "endpoint", self.endpoints), ("tasks", "task", self.tasks)):
            for name in getattr(self.pools, side):
                if name not in names:
                    known = ", ".join(sorted(names)) or "none"
                    text = f"pools.{side}.{name}: the catalogue has no such {what}: use one of those it has ({known})"
                    raise PydanticCustomError("rule", "{text}", {"text": text})
        return self

    def task(self, name: str | None, image: str | None) -> CatalogueTask | None:
        """Return the task that a run names, by catalogue name or by an image that the allow-list has, else None.

        An allow-list entry that ends in ``/``, ``:`` or ``@`` allows what starts with it; any other entry allows the
        repository that it names, with any tag or digest.
        """
        if name is not None:
            return self.tasks.get(name)
        if image is not None and any(_allows(entry, image) for entry in self.allowed_task_images):
            return CatalogueTask(image=image)
        return None

    def image(self, alias_or_reference: str) -> str | None:
        """Return the image of an alias; a full reference stands for itself where the allow-list has it, else None."""
        if alias_or_reference in self.images:
            return self.images[alias_or_reference]
        allowed = any(_allows(entry, alias_or_reference) for entry in self.allowed_task_images)
        return alias_or_reference if allowed else None


def _allows(entry: str, image: str) -> bool:
    if not entry or not image.startswith(entry):
        return False
    # Without this, an entry "registry.example/team" would allow "registry.example/team-of-somebody-else".
    return entry[-1] in "/:@" or image[len(entry) : len(entry) + 1] in ("", "/", ":", "@")
