"""Examination of a navigation task: its scenes, the width of its body, cameras, goals and first paths."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from nimbus.datagen.doctor.diagnosis import Diagnosis, finding_from_error
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.errors import Diagnostic, InputError, Severity
from nimbus.datagen.execute.path_planner import plan_drive
from nimbus.datagen.navigate.free_space import CELL, CELL_SLACK, is_roof
from nimbus.datagen.navigate.goals import check_kinds
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.scene_map import map_scene
from nimbus.datagen.randomize.goals import sampler_of
from nimbus.datagen.tasks.navigation_assets import NavigationAssets
from nimbus.datagen.tasks.task import NavigationTask

_SCENES = 3
"""Largest number of scenes that are opened."""
_PATHS = 5
"""Number of goals that are tried in each scene."""
_LEAST_JOINED = 0.6
"""Smallest acceptable area of the largest connected region, as a fraction of the floor area where the body fits."""
_LEAST_ROOF = 0.1
"""Smallest region that may be a roof, as a fraction of the largest connected region."""
_LEAST_DRAWN = 0.5
"""Smallest acceptable fraction of goals with a path."""


@dataclass(frozen=True, kw_only=True)
class SceneExam:
    """Figures of one scene."""

    name: str
    rooms: int
    things: int
    area: float
    """Free area of the largest region [m²]."""
    narrowest: float
    """Width of the scene's narrowest passage [m]; 0 if none is known."""
    paths: int
    """Number of tried goals with a path."""
    tried: int
    reasons: dict[str, int] = field(default_factory=dict)
    """Number of tried goals without a path, by reason."""

    def line(self) -> str:
        """Return the figures as one line."""
        doors = f", narrowest passage {self.narrowest * 100:.0f} cm" if self.narrowest else ""
        why = "".join(f"; {count} x {reason}" for reason, count in self.reasons.items())
        text = f"{self.rooms} rooms, {self.things} things, {self.area:.0f} m2 of free area{doors}"
        return f"scene      {self.name}: {text}; {self.paths} of {self.tried} goals have a path{why}"


def examine_navigation(task: NavigationTask, *, probe: bool = True) -> Diagnosis:
    """Examine a navigation task.

    Args:
        task: The task.
        probe: Search for paths to some goals in each scene.
    """
    findings: list[Diagnostic] = []
    exams: list[SceneExam] = []
    seconds: dict[str, float] = {}
    for number in _spread(task.source.count):
        begin = time.process_time()
        try:
            scene = task.source.open(number)
            findings += _check_doors(task, scene)
            assets = NavigationAssets(task=task, number=number, place=map_scene(scene, task.body.shape))
            check_kinds(assets.place, task.navigate.to, () if task.navigate.kinds == "all" else task.navigate.kinds)
        except InputError as error:
            findings.append(_certain(finding_from_error("scenes", error)))
            continue
        finally:
            seconds["scenes"] = seconds.get("scenes", 0.0) + time.process_time() - begin
        findings += [*_check_floor(task, assets), *_check_cameras(task, assets)]
        begin = time.process_time()
        exam = _exam(task, assets, count=_PATHS if probe else 0)
        seconds["paths"] = seconds.get("paths", 0.0) + time.process_time() - begin
        exams.append(exam)
        if exam.tried and exam.paths < _LEAST_DRAWN * exam.tried:
            findings.append(_few_paths(task, exam))
    return Diagnosis(
        task=task.name,
        findings=tuple(dict.fromkeys(findings)),
        scenes=tuple(exam.line() for exam in exams),
        seconds=seconds,
    )


def _spread(count: int) -> list[int]:
    return np.unique(np.linspace(0, count - 1, min(count, _SCENES)).round().astype(int)).tolist()


def _certain(found: Diagnostic) -> Diagnostic:
    return Diagnostic(
        check=found.check, severity=Severity.FAIL, where=found.where, what=found.what, instead=found.instead
    )


def _finding(check: str, task: NavigationTask, keys: tuple[str, ...], what: str, instead: str) -> Diagnostic:
    return Diagnostic(check=check, severity=Severity.WARN, where=task.where(*keys), what=what, instead=instead)


def _check_doors(task: NavigationTask, scene: NavigationScene) -> Iterator[Diagnostic]:
    """Compare the width of the body with the widths of the doors."""
    across = 2 * (task.body.radius + CELL_SLACK * CELL)
    widths = [passage.width for passage in scene.passages]
    if widths and max(widths) < across:
        widest = f"no door of {scene.name} is wider than {max(widths) * 100:.0f} cm"
        what = f"the body needs {across * 100:.0f} cm, and {widest}"
        yield _finding("body", task, ("body",), what, f"write radius: {max(widths) * 45:.0f} cm, or less")
    elif widths and (narrow := sum(width < across for width in widths)):
        what = f"the body needs {across * 100:.0f} cm; {narrow} of {len(widths)} doors of {scene.name} are narrower"
        yield _finding("body", task, ("body",), what, "write a smaller radius, or leave those rooms out")


def _check_floor(task: NavigationTask, assets: NavigationAssets) -> Iterator[Diagnostic]:
    """Compare the largest connected floor area with the whole area on which the body fits, without roofs."""
    space, scene, mesh = assets.place.space, assets.scene, assets.place.mesh
    sizes = np.bincount(space.component[space.component >= 0])
    large = np.flatnonzero(sizes >= _LEAST_ROOF * sizes[0])
    fits = sizes.sum() - sum(sizes[part] for part in large if part and is_roof(mesh, space, int(part)))
    joined = sizes[0] / fits
    if joined < _LEAST_JOINED:
        what = f"only {joined:.0%} of the floor of {scene.name} where the body fits is connected"
        yield _finding("body", task, ("body",), what, "write a smaller radius, or a higher step for stairs and sills")


def _check_cameras(task: NavigationTask, assets: NavigationAssets) -> Iterator[Diagnostic]:
    """Find cameras above a ceiling or outside the body, at their nominal poses or as ``rig`` draws them."""
    heights = [room.height for room in assets.scene.rooms]
    if not heights:
        return
    rig = task.randomize.get("rig")
    drawn = getattr(rig, "height", None)
    for name, camera in task.cameras.items():
        top = float(drawn[1]) if drawn is not None else camera.position[2]
        keys = ("randomize", "rig") if drawn is not None else ("cameras", name, "position")
        if top >= min(heights):
            ceiling = f"a ceiling of {assets.scene.name} is at {min(heights):.2f} m"
            what = f"'{name}' is up to {top:.2f} m above the floor, but {ceiling}"
            yield _finding("cameras", task, keys, what, f"write less than {min(heights):.2f} m")
        aside = float(np.hypot(*camera.position[:2]))
        if aside > task.body.radius:
            what = f"'{name}' is {aside * 100:.0f} cm from the axis, outside of the body: it may enter walls"
            yield _finding("cameras", task, ("cameras", name, "position"), what, "move it to a point above the body")


def _exam(task: NavigationTask, assets: NavigationAssets, *, count: int) -> SceneExam:
    """Draw goals, and search for paths to them."""
    reasons: Counter[str] = Counter()
    paths = 0
    sampler = sampler_of(task, assets, seed=0)
    for rank in range(count):
        physical = PhysicalLayout(objects=(), drawn={"goal": sampler.goal(rank).to_plain()})
        outcome = plan_drive(task, assets, physical).outcome
        paths += outcome.success
        if not outcome.success:
            reasons[f"{outcome.reason}: {outcome.detail}"] += 1
    scene, widths = assets.scene, [passage.width for passage in assets.scene.passages]
    return SceneExam(
        name=scene.name,
        rooms=len(scene.rooms),
        things=len(scene.goals),
        area=assets.place.space.area,
        narrowest=min(widths, default=0.0),
        paths=paths,
        tried=count,
        reasons=dict(reasons),
    )


def _few_paths(task: NavigationTask, exam: SceneExam) -> Diagnostic:
    worst = max(exam.reasons, key=lambda reason: exam.reasons[reason])
    what = f"{exam.tried - exam.paths} of {exam.tried} goals in {exam.name} have no path: {worst}"
    found = _finding("paths", task, ("navigate",), what, "change the fields length, detour, kinds or keep")
    return _certain(found) if not exam.paths else found
