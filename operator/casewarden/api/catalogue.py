"""The catalogue: the tasks and images that an administrator lets runs use (``docs/internals/wire.md``, 7)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .common import ApiModel, Argument, Image, ShortName
from .endpoint import Endpoint

__all__ = ["Catalogue", "CatalogueDataset", "CataloguePool", "CataloguePools", "CatalogueTask"]

_VOLUMES: Final = frozenset({"configMap", "csi", "image", "persistentVolumeClaim"})


class CatalogueDataset(ApiModel):
    """A data set of a task: the volume that has it, of the run's namespace, and where it lies in there."""

    volume: dict[str, dict[str, Any]]
    """One volume source as a pod has it: ``{persistentVolumeClaim: {claimName: …}}``. Mounted read-only."""
    path: Annotated[str, Field(max_length=512, pattern=r"^[^/].*$")] | None = None
    """Of the folder or archive (tar, tar.gz, tar.xz), below the volume; the whole volume where it is left out."""
    sha256: Annotated[str, Field(pattern=r"^(sha256:)?[0-9a-f]{64}$")] | None = None
    """What it must be; the task refuses another."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.volume) != 1 or not set(self.volume) <= _VOLUMES:
            known = ", ".join(sorted(_VOLUMES))
            message = f"volume has {', '.join(self.volume) or 'nothing'}: give exactly one of {known}"
            raise PydanticCustomError("dataset", "{text}", {"text": message})
        return self


class CatalogueTask(ApiModel):
    """A task pack: its image, the command that answers ``plan`` and ``drive``, and the data sets that runs may name."""

    image: Image
    command: Annotated[list[Argument], Field(max_length=64)] = Field(default_factory=list)
    """Empty means the image's own entry point."""
    datasets: dict[ShortName, CatalogueDataset] = Field(default_factory=dict)
    """By the name that ``spec.task.params.dataset`` has."""

    @property
    def dataset_places(self) -> dict[str, dict[str, Any]]:
        """The data sets as plain JSON."""
        return {name: item.model_dump(mode="json", exclude_none=True) for name, item in self.datasets.items()}


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
