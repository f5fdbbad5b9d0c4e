"""The five stages, Load → Randomize → Plan → Render → Store, and the chain that pulls episodes through them.

A stage turns an iterator into an iterator and knows nothing of processes: the same component runs in a chain in one
process, or in a worker that feeds it from a queue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nimbus.datagen.episode import Provenance
from nimbus.datagen.layout import Layout
from nimbus.datagen.observation import Labels, Observation
from nimbus.datagen.trajectory import Outcome, Trajectory

In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(frozen=True, kw_only=True)
class Request:
    """One episode asked for: its index in the run, and which visual variants of it."""

    index: int
    variants: tuple[int, ...] = (0,)

    @property
    def label(self) -> str:
        """How errors name it before it has an id."""
        return f"episode {self.index}"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A loaded and validated scene, ready for layouts; ``assets`` belongs to the component that made it."""

    request: Request
    assets: Any
    provenance: Provenance

    @property
    def label(self) -> str:
        """How errors name it."""
        return self.request.label


@dataclass(frozen=True, kw_only=True)
class Randomized:
    """A scene with its layouts: one physical part, a visual part for each variant."""

    scene: Scene
    layouts: tuple[Layout, ...]

    @property
    def label(self) -> str:
        """How errors name it."""
        return self.layouts[0].key.id


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One executed attempt at a layout, successful or not."""

    scene: Scene
    layouts: tuple[Layout, ...]
    trajectory: Trajectory
    attempt: int = 0
    final: bool = True
    """No further attempt follows for this layout."""
    times: dict[str, float] = field(default_factory=dict)
    """CPU seconds by stage so far."""

    @property
    def label(self) -> str:
        """How errors name it."""
        return self.layouts[0].key.id


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """One visual variant of a plan. ``observations`` is lazy: a chunk is rendered when the writer asks for it."""

    scene: Scene
    layout: Layout
    trajectory: Trajectory
    labels: Labels | None
    observations: Iterator[Observation]
    attempt: int = 0
    final: bool = True
    times: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How errors name it."""
        return self.layout.key.id


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What became of one attempt at one episode."""

    episode_id: str
    index: int
    variant: int
    attempt: int
    outcome: Outcome
    final: bool = True
    """No further attempt follows for this episode."""
    path: str = ""
    """File of the stored episode, relative to the dataset; empty for a failed attempt."""
    step_count: int = 0
    byte_count: int = 0
    times: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How errors name it."""
        return self.episode_id


class Stage(ABC, Generic[In, Out]):
    """Turns items into items, lazily: pulling one result takes no more inputs than it needs."""

    name: str

    @abstractmethod
    def process(self, item: In) -> Iterator[Out]:
        """Yield what becomes of one item."""

    def __call__(self, items: Iterator[In]) -> Generator[Out, None, None]:
        """Process items one after another; an error carries the stage and the episode it happened in."""
        for item in items:
            try:
                yield from self.process(item)
            except Exception as error:
                note = f"in stage {self.name}, {getattr(item, 'label', item)}"
                if note not in getattr(error, "__notes__", ()):
                    error.add_note(note)
                raise

    def close(self) -> None:
        """Release what the stage holds; called once, also after an error."""
        return None


class SceneLoader(Stage[Request, Scene]):
    """Loads and validates what an episode needs."""

    name = "load"


class Randomizer(Stage[Scene, Randomized]):
    """Draws layouts."""

    name = "randomize"


class Planner(Stage[Randomized, Planned]):
    """Plans and executes attempts."""

    name = "plan"


class Renderer(Stage[Planned, Rendered]):
    """Replays trajectories in front of cameras."""

    name = "render"


class Writer(Stage[Rendered, Stored]):
    """Stores episodes and records every attempt."""

    name = "store"


class Chain:
    """Stages in a row. Iterating pulls; closing closes every stage, last first."""

    def __init__(self, stages: list[Stage[Any, Any]]) -> None:
        self.stages = stages
        self._running: list[Generator[Any, None, None]] = []
        self._closed = False

    def run(self, requests: Iterator[Request]) -> Iterator[Any]:
        """Pull requests through all stages, one at a time."""
        items: Iterator[Any] = requests
        for stage in self.stages:
            self._running.append(running := stage(items))
            items = running
        return items

    def close(self) -> None:
        """End what is under way, then close every stage, even when one of them raises; a second time does nothing."""
        if self._closed:
            return
        self._closed = True
        with ExitStack() as stack:
            for part in (*self.stages, *self._running):
                stack.callback(part.close)

    def __enter__(self) -> Chain:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
