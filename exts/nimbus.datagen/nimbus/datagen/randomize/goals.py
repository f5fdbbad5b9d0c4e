"""Randomize stage of navigation: start and goal of an episode, and one visual layout per variant."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

from nimbus.datagen.episode.layout import EpisodeKey, Layout, PhysicalLayout, SurfaceLook, VisualLayout
from nimbus.datagen.navigate.goals import GoalRequest, GoalSampler, NavigationGoal
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.pipeline import NoSettings, RunContext, register_component
from nimbus.datagen.random_streams import RUN
from nimbus.datagen.randomize.base import Draft, LayoutRandomization
from nimbus.datagen.stages import Randomized, Randomizer, Scene
from nimbus.datagen.tasks.navigation_assets import NavigationAssets
from nimbus.datagen.tasks.task import NavigationTask

_KEPT = 2
"""Number of samplers that a process keeps."""


class GoalRandomizer(Randomizer["NavigationAssets"]):
    """Randomizer that draws starts and goals, and applies the task's randomizers.

    It prefers areas that earlier paths do not cover.

    Args:
        task: Navigation task.
        seed: Seed of the run.
        split: Name of the set of episodes to draw, such as :data:`RUN`; each set has other starts and goals.
    """

    version: ClassVar[int] = 2

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        """Create the randomizer of a run."""
        return cls(context.need_navigation(), context.seed, split=context.split)

    def __init__(self, task: NavigationTask, seed: int, *, split: str = RUN) -> None:
        self._task, self._seed, self._split = task, seed, split
        self._samplers: OrderedDict[int, GoalSampler] = OrderedDict()

    def process(self, item: Scene[NavigationAssets]) -> Iterator[Randomized[NavigationAssets]]:
        """Yield all layouts of a request."""
        task, index = self._task, item.request.index
        first = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=self._seed, index=index, split=self._split)
        _, rank = task.address(index)
        goal = self._sampler(item.assets).goal(rank)
        physical = PhysicalLayout(objects=(), drawn={"goal": goal.to_plain()})
        layouts = []
        for variant in item.request.variants:
            key = replace(first, variant=variant)
            visual = draw_views(task, item.assets.scene, physical, key=key)
            layouts.append(Layout(key=key, physical=physical, visual=visual))
        yield Randomized(scene=item, layouts=tuple(layouts))

    def _sampler(self, assets: NavigationAssets) -> GoalSampler:
        if assets.number not in self._samplers:
            self._samplers[assets.number] = sampler_of(self._task, assets, seed=self._seed, split=self._split)
            while len(self._samplers) > _KEPT:
                self._samplers.popitem(last=False)
        self._samplers.move_to_end(assets.number)
        return self._samplers[assets.number]


register_component("randomize", "goals", GoalRandomizer, NoSettings)


def sampler_of(task: NavigationTask, assets: NavigationAssets, *, seed: int, split: str = RUN) -> GoalSampler:
    """Return the sampler of a scene's goals.

    Raises:
        InputError: The scene has no goals.
    """
    wanted = task.navigate
    request = GoalRequest(
        to=wanted.to,
        kinds=() if wanted.kinds == "all" else wanted.kinds,
        length=wanted.length,
        detour=wanted.detour,
        duplicates=task.keep.duplicates,
    )
    salt = seed if split == RUN else seed + 2**31
    return GoalSampler(assets.place, request, seed=salt, number=assets.number)


def draw_views(
    task: NavigationTask, scene: NavigationScene, physical: PhysicalLayout, *, key: EpisodeKey
) -> VisualLayout:
    """Draw the visual layout of a variant: cameras, lamps and looks."""
    streams = partial(key.generator, "visual", key.variant)
    draft = Draft(
        cameras=[settings.camera(name) for name, settings in task.cameras.items()],
        surfaces={thing.name: SurfaceLook() for thing in scene.things},
    )
    drawn: dict[str, Any] = {}
    for name, settings in sorted(task.randomize.items()):
        if isinstance(settings, LayoutRandomization) and settings.part == "visual":
            drawn[name] = settings.draw(draft, partial(streams, name))
    return VisualLayout(
        light=draft.light,
        cameras=tuple(draft.cameras),
        latency=draft.latency,
        surfaces={name: look for name, look in draft.surfaces.items() if look != SurfaceLook()},
        instruction=short_instruction(physical),
        drawn=drawn,
    )


def short_instruction(physical: PhysicalLayout) -> str:
    """Return an instruction that names the destination but not the route."""
    goal = NavigationGoal.from_drawn(physical.drawn)
    kind = goal.object_class.replace("_", " ")
    room = goal.rooms[1].rpartition("_")[0].replace("_", " ")
    if goal.kind == "point" or not kind:
        dx, dy = goal.goal[0] - goal.start[0], goal.goal[1] - goal.start[1]
        return f"Go to the point {dx:.1f} m along x and {dy:.1f} m along y from here."
    if goal.kind == "room":
        return f"Go to the {kind}."
    return f"Go to the {kind} in the {room}." if room else f"Go to the {kind}."
