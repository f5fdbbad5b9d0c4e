"""The Randomize stage for tabletop tasks: a physical layout, and one visual layout for each variant."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from nimbus.datagen.layout import EpisodeKey, Layout, PhysicalLayout, PlacedObject, Surface, VisualLayout
from nimbus.datagen.randomize.draft import Draft, LayoutRandomization, Streams
from nimbus.datagen.randomize.light import nominal_light
from nimbus.datagen.randomize.objects import draw_objects
from nimbus.datagen.registry import register
from nimbus.datagen.stages import Randomized, Randomizer, Scene
from nimbus.datagen.streams import stream
from nimbus.datagen.task import Task
from nimbus.datagen.usd.loader import SceneAssets

_BARE = {"table": "wood", "floor": "tiles", "backdrop": "paint"}
"""Textures of a task that does not randomize materials."""


@register("randomize", "tabletop")
class TabletopRandomizer(Randomizer):
    """Draws objects and their places, then what the task asks to randomize.

    The physical and the visual part have streams of their own, and so has every randomizer in them, so that a further
    randomizer or variant moves no other draw.

    Args:
        task: The task.
        seed: The run's seed.
    """

    def __init__(self, task: Task, seed: int) -> None:
        self._task, self._seed = task, seed

    def process(self, item: Scene) -> Iterator[Randomized]:
        """All layouts of one request."""
        request = item.request
        key = partial(EpisodeKey, task=self._task.name, task_hash=self._task.content_hash, seed=self._seed)
        physical = self._physical(item.assets, partial(stream, self._seed, request.index, "physical"))
        layouts = []
        for variant in request.variants:
            streams = partial(stream, self._seed, request.index, "visual", variant)
            visual = self._visual(item.assets, physical, streams)
            layouts.append(Layout(key=key(index=request.index, variant=variant), physical=physical, visual=visual))
        yield Randomized(scene=item, layouts=tuple(layouts))

    def _physical(self, assets: SceneAssets, streams: Streams) -> PhysicalLayout:
        objects, drawn = draw_objects(self._task, assets.stage, partial(streams, "objects"), reachable=assets.reach)
        draft = Draft(objects=objects)
        values = {"objects": drawn} | self._apply("physical", draft, streams)
        return PhysicalLayout(objects=tuple(draft.objects), drawn=values)

    def _visual(self, assets: SceneAssets, physical: PhysicalLayout, streams: Streams) -> VisualLayout:
        things = (*(item.name for item in physical.objects), *assets.stage.fixtures)
        draft = Draft(
            objects=list(physical.objects),
            light=nominal_light(),
            cameras=[assets.robot.mounted(settings.camera(name)) for name, settings in self._task.cameras.items()],
            surfaces={name: Surface(texture=texture) for name, texture in _BARE.items()}
            | {name: Surface() for name in things},
        )
        drawn = self._apply("visual", draft, streams)
        template = str(streams("language").choice(self._task.instructions))
        assert draft.light is not None
        return VisualLayout(
            light=draft.light,
            cameras=tuple(draft.cameras),
            surfaces=draft.surfaces,
            instruction=_instruction(template, self._task, physical.objects),
            drawn=drawn | {"language": {"template": template}},
        )

    def _apply(self, part: str, draft: Draft, streams: Streams) -> dict[str, Any]:
        drawn = {}
        for name, settings in self._task.randomize.items():
            if isinstance(settings, LayoutRandomization) and settings.part == part:
                drawn[name] = settings.draw(draft, partial(streams, name))
        return drawn


def _instruction(template: str, task: Task, objects: tuple[PlacedObject, ...]) -> str:
    """Fill in ``{items}`` with what there is: "the bottle, the can and the jar"."""
    return template.format(
        **{group: _listed([item for item in objects if item.group == group]) for group in task.objects}
    )


def _listed(objects: list[PlacedObject]) -> str:
    names = [f"the {item.kind.replace('_', ' ')}" for item in objects]
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part) if names else "nothing"
