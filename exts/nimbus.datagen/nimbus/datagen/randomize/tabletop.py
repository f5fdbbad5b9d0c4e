"""Randomize stage for tabletop tasks: a physical layout, and one visual layout per variant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from nimbus.datagen import registry
from nimbus.datagen.episode.layout import EpisodeKey, Layout, PhysicalLayout, SurfaceLook, VisualLayout
from nimbus.datagen.pipeline import NoSettings, RunContext, register_component
from nimbus.datagen.random_streams import RUN, Streams, episode_generator
from nimbus.datagen.randomize.base import Draft, LayoutRandomization
from nimbus.datagen.randomize.objects import draw_objects
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.rooms.look import draw_look
from nimbus.datagen.rooms.settings import RoomSettings
from nimbus.datagen.stages import Randomized, Randomizer, Scene
from nimbus.datagen.tasks.control_flow.members import chosen_names
from nimbus.datagen.tasks.references import build_environment
from nimbus.datagen.tasks.steps import Composite, Scope, Step, Steps, stored_choices
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.usd.stage import StageInfo, layout_room

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import SceneAssets

_BARE = {"table": "wood", "floor": "tiles", "backdrop": "paint"}
"""Textures of a task that does not randomize materials."""
_DEFAULT = "newton"


def draw_choices(task: Task, objects: Iterable[Any], streams: Streams) -> dict[str, int]:
    """Draw every choice in a task's steps and conditions.

    Args:
        task: Task with the choices.
        objects: Objects of the episode.
        streams: Generators by address.

    Returns:
        Index of the branch or member of each choice, by address; empty for a task without choices.
    """
    choices: dict[str, int] = {}
    scope = Scope(build_environment(objects=objects, regions=task.regions), choices)
    # A choice that steps and conditions share is drawn once, so that a condition checks the executed branch.
    for steps in (task.steps, task.success):
        for address, weights in _draws(steps, scope):
            if address not in choices:
                total = sum(weights)
                shares = [weight / total for weight in weights]
                choices[address] = int(streams(address).choice(len(weights), p=shares))
    return choices


def _draws(steps: Steps, scope: Scope) -> Iterator[tuple[str, list[float]]]:
    """Yield all choices, outer ones first, because an inner choice exists only in the branch that was drawn."""
    for step in steps:
        if isinstance(step, Step):
            continue
        yield from _draws_of(step, scope)


def _draws_of(step: Composite, scope: Scope) -> Iterator[tuple[str, list[float]]]:
    if drawn := step.draws(scope):
        yield drawn
    for inner in step.scopes(scope):
        for block in step.blocks():
            yield from _draws(block, inner)


class TabletopRandomizer(Randomizer["SceneAssets"]):
    """Randomizer that draws objects and their positions, and then applies the task's randomizers.

    The physical and the visual part have separate streams, and so does every randomizer in them. An additional
    randomizer or variant therefore changes no other draw.

    Args:
        task: Tabletop task.
        seed: Seed of the run.
        run_settings: Choices of the command line, with the simulators that execute and render the layouts.
        split: Set of episodes to draw: those of runs, or of evaluations.
    """

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        """Create the randomizer of a run."""
        return cls(context.need_task(), context.seed, context.choices, split=context.split)

    def __init__(
        self, task: Task, seed: int, run_settings: Mapping[str, str] | None = None, *, split: str = RUN
    ) -> None:
        self._task, self._seed, self._split = task, seed, split
        settings = run_settings or {}
        self._shown_by = settings.get("sim", _DEFAULT)
        self._moved_by = settings.get("physics", self._shown_by)

    def process(self, item: Scene[SceneAssets]) -> Iterator[Randomized[SceneAssets]]:
        """Yield all layouts of a request."""
        assets, index = item.assets, item.request.index
        first = EpisodeKey(
            task=self._task.name, task_hash=self._task.content_hash, seed=self._seed, index=index, split=self._split
        )
        physical = draw_physical(
            self._task, assets, seed=self._seed, index=index, split=self._split, simulator=self._moved_by
        )
        layouts = []
        for variant in item.request.variants:
            key = replace(first, variant=variant)
            visual = draw_visual(self._task, assets.stage, assets.robot, physical, key=key, simulator=self._shown_by)
            layouts.append(Layout(key=key, physical=physical, visual=visual))
        yield Randomized(scene=item, layouts=tuple(layouts))


register_component("randomize", "tabletop", TabletopRandomizer, NoSettings)


def draw_physical(
    task: Task, assets: SceneAssets, *, seed: int, index: int, split: str = RUN, simulator: str = _DEFAULT
) -> PhysicalLayout:
    """Draw the physical layout of an episode for a simulator."""
    streams = partial(episode_generator, seed, split, index, "physical")
    objects, drawn = draw_objects(task, assets.stage, partial(streams, "objects"), reachable=assets.reach)
    joints = tuple(name for arm in assets.robot.arms for name in arm.arm.joints)
    hands = tuple(arm.tool.link for arm in assets.robot.arms)
    draft = Draft(objects=objects, joints=joints, hands=hands, regions=task.regions, scene=assets.stage)
    values = {"objects": drawn} | _apply(task, "physical", draft, streams, simulator)
    if choices := draw_choices(task, objects, partial(streams, "choices")):
        values["choices"] = choices
    return PhysicalLayout(objects=tuple(draft.objects), robot=draft.robot, disturbance=draft.disturbance, drawn=values)


def draw_visual(
    task: Task,
    stage: StageInfo,
    robot: Robot,
    physical: PhysicalLayout,
    *,
    key: EpisodeKey,
    simulator: str = _DEFAULT,
) -> VisualLayout:
    """Draw the visual layout of one variant of an episode for the renderer of a simulator."""
    streams = partial(key.generator, "visual", key.variant)
    things = (*(item.name for item in physical.objects), *stage.fixtures)
    draft = Draft(
        objects=list(physical.objects),
        cameras=[robot.mounted(settings.camera(name)) for name, settings in task.cameras.items()],
        surfaces=_bare(layout_room(stage, physical)) | dict.fromkeys(things, SurfaceLook()),
        names={item.name: item.kind.replace("_", " ") for item in physical.objects},
    )
    drawn = _apply(task, "visual", draft, streams, simulator)
    dome = draft.dome
    template = str(streams("language").choice(task.instructions))
    return VisualLayout(
        light=draft.light if dome is None else replace(draft.light, sky=dome.sky, ground=dome.ground),
        cameras=tuple(draft.cameras),
        latency=draft.latency,
        table_rise=draft.table_rise,
        surfaces=draft.surfaces,
        instruction=_instruction(template, task, draft, stored_choices(physical.drawn)),
        drawn=drawn | {"language": {"template": template} | drawn.get("language", {})},
        dome=dome,
    )


def _bare(room: RoomSettings | None) -> dict[str, SurfaceLook]:
    """Return the looks of table, floor and walls in a task that does not randomize materials."""
    if room is not None:
        return dict(draw_look(room.family, room.look_seed).surfaces)
    return {name: SurfaceLook(texture=texture) for name, texture in _BARE.items()}


def not_applied(simulator: str, part: str) -> Collection[str]:
    """Return the randomizers that a simulator does not support in the physical or visual part of a layout.

    A simulator's class lists them in ``NOT_APPLIED``.
    """
    kind = {"physical": "simulator", "visual": "render"}[part]
    known = simulator in registry.names(kind)
    return getattr(registry.lookup(kind, simulator), "NOT_APPLIED", ()) if known else ()


def _apply(task: Task, part: str, draft: Draft, streams: Streams, simulator: str) -> dict[str, Any]:
    """Apply the task's randomizers of one part to the draft, and return the drawn values by name.

    A randomizer that the simulator does not support is skipped, so that the layout describes the actual scene.
    """
    left_out = not_applied(simulator, part)
    chosen = {
        name: settings
        # Randomizers are sorted by name, so that the order of entries in the task file does not matter.
        for name, settings in sorted(task.randomize.items())
        if isinstance(settings, LayoutRandomization) and settings.part == part
    }
    return {
        name: {"not applied": simulator} if name in left_out else settings.draw(draft, partial(streams, name))
        for name, settings in chosen.items()
    }


def _instruction(template: str, task: Task, draft: Draft, choices: Mapping[str, int]) -> str:
    """Replace ``{items}`` by the objects, as in "the bottle, the can and the jar", and apply the sentence around it."""
    groups = {name: [item for item in draft.objects if item.group == name] for name in task.objects}
    for name, group in chosen_names((*task.steps, *task.success)).items():
        address, members = f"{name} in {group}", groups[group]
        groups[name] = [members[Scope({}, choices).choice(address, len(members))]] if address in choices else []
    said = template.format(
        **{name: _listed([f"the {draft.names[item.name]}" for item in members]) for name, members in groups.items()}
    )
    if draft.sentence == Draft.sentence:
        return said
    said = said.rstrip(".! ")
    return draft.sentence.format(instruction=said[:1].lower() + said[1:], Instruction=said[:1].upper() + said[1:])


def _listed(names: list[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part) if names else "nothing"
