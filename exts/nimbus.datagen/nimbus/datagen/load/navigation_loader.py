"""Load stage of navigation: opens the scene of an episode and finds its free space; recent scenes stay open."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Self

from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.navigate.goals import check_kinds
from nimbus.datagen.navigate.scene_map import map_scene
from nimbus.datagen.pipeline import NoSettings, RunContext, register_component
from nimbus.datagen.progress import allow
from nimbus.datagen.stages import Request, Scene, SceneLoader
from nimbus.datagen.tasks.navigation_assets import NavigationAssets
from nimbus.datagen.tasks.own_tasks import record_run
from nimbus.datagen.tasks.stored_pictures import hash_pictures
from nimbus.datagen.tasks.task import NavigationTask

_KEPT = 2
"""Number of scenes that a process keeps open; neighboring episodes in the queue share a scene."""
_SLOW = 240.0
"""Time limit for opening and mapping a scene [s]; large scans take less."""


class NavigationLoader(SceneLoader[NavigationAssets]):
    """Loader of the scenes of a task's source.

    Args:
        task: Navigation task.
        assets: Scene that is already open.
        run_settings: Choices of the command line, for the provenance.
        ancestors: Ancestors of the episodes, for the provenance.
    """

    version: ClassVar[int] = 3
    """Version 3: closed roofs do not count as floor."""

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        """Create the loader of a run."""
        assets = context.assets if isinstance(context.assets, NavigationAssets) else None
        return cls(context.need_navigation(), assets, context.choices, context.ancestors)

    @classmethod
    def open_shared(cls, task: object) -> NavigationAssets | None:
        """Open the first scene of a navigation task, and check that its goals exist."""
        if not isinstance(task, NavigationTask):
            return None
        assets = open_navigation(task, 0)
        if task.navigate.kinds != "all":
            check_kinds(assets.place, task.navigate.to, task.navigate.kinds)
        return assets

    @classmethod
    def hashes_of(cls, task: object, assets: object | None) -> dict[str, str]:
        """Return the fingerprint of the source of scenes."""
        return task.source.fingerprint() if isinstance(task, NavigationTask) else {}

    def __init__(
        self,
        task: NavigationTask,
        assets: NavigationAssets | None = None,
        run_settings: Mapping[str, str] | None = None,
        ancestors: Mapping[str, str] | None = None,
    ) -> None:
        self._task, self._run_settings, self._ancestors = task, dict(run_settings or {}), dict(ancestors or {})
        self._kept: OrderedDict[int, NavigationAssets] = OrderedDict()
        if assets is not None:
            self._kept[assets.number] = assets

    def process(self, item: Request) -> Iterator[Scene[NavigationAssets]]:
        """Yield the scene of a request."""
        number, _ = self._task.address(item.index)
        task = self._task
        provenance = Provenance(
            task_text=task.text,
            task_hash=task.content_hash,
            assets=self._hashes,
            settings=self._run_settings,
            ancestors=self._ancestors,
        )
        yield Scene(request=item, assets=self.assets(number), provenance=provenance)

    @cached_property
    def _hashes(self) -> dict[str, str]:
        """Content hashes of all files, for the provenance; large sets of scenes have thousands of files."""
        hashes = self._task.source.fingerprint() | hash_pictures(self._task)
        record_run(self._task, hashes)
        return hashes

    def of_index(self, index: int) -> NavigationAssets:
        """Return the scene of an episode by its index."""
        return self.assets(self._task.address(index)[0])

    def assets(self, number: int) -> NavigationAssets:
        """Return the scene with a number.

        Raises:
            InputError: The scene cannot be used.
        """
        if number not in self._kept:
            with allow(_SLOW):
                self._kept[number] = open_navigation(self._task, number)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(number)
        return self._kept[number]


register_component("load", "scenes", NavigationLoader, NoSettings)


def open_navigation(task: NavigationTask, number: int) -> NavigationAssets:
    """Open a scene of a task, and find the free space of its body.

    Raises:
        InputError: The scene cannot be used.
    """
    scene = task.source.open(number)
    return NavigationAssets(task=task, number=number, place=map_scene(scene, task.body.shape))
