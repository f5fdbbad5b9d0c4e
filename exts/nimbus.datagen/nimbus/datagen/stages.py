"""The five stages, Load → Randomize → Plan → Render → Store, and the chain that pulls episodes through them.

A stage maps an iterator to an iterator and does not depend on processes: the same component runs in a chain in one
process, or in a worker that feeds it from a queue.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol

from typing_extensions import TypeVar

from nimbus.datagen.episode.layout import Layout, PhysicalLayout
from nimbus.datagen.episode.observation import Labels, Observation
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Outcome, Trajectory
from nimbus.datagen.progress import report_activity, tick

Assets = TypeVar("Assets", default=object)
"""Scene made by a load component and used by later stages."""
Assets_co = TypeVar("Assets_co", default=object, covariant=True)
Assets_contra = TypeVar("Assets_contra", default=object, contravariant=True)


@dataclass(frozen=True, kw_only=True)
class Item:
    """Item that is passed from one stage to the next."""

    times: dict[str, float] = field(default_factory=dict, compare=False)
    """CPU seconds per stage that are not yet attributed to an earlier result, so that sums over results are totals.

    Names of waiting times end with ``_wait``.
    """

    @property
    def label(self) -> str:
        """Name in error messages: the episode's id, or its index as long as it has no id."""
        match self:
            case Request(index=index) | Scene(request=Request(index=index)):
                return f"episode {index}"
            case Randomized(layouts=(layout, *_)) | Planned(layouts=(layout, *_)) | Rendered(layout=layout):
                return layout.key.id
            case Stored(episode_id=episode_id):
                return episode_id
        return "an item"


In = TypeVar("In", bound=Item)
Out = TypeVar("Out", bound=Item)


@dataclass(frozen=True, kw_only=True)
class StoredPlan:
    """Plan that the dataset already contains; additional variants render it unchanged."""

    physical: PhysicalLayout
    trajectory: Trajectory
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Request(Item):
    """Request for one episode: its index in the run, and its visual variants."""

    index: int
    variants: tuple[int, ...] = (0,)
    plan: StoredPlan | None = None
    """Plan to render, if another variant of this episode is already stored; None to plan."""


@dataclass(frozen=True, kw_only=True)
class Scene(Item, Generic[Assets_co]):
    """Loaded and validated scene; ``assets`` has the type that the load component makes."""

    request: Request
    assets: Assets_co
    provenance: Provenance


@dataclass(frozen=True, kw_only=True)
class Randomized(Item, Generic[Assets_co]):
    """Scene with its layouts: one physical part, and a visual part for each variant."""

    scene: Scene[Assets_co]
    layouts: tuple[Layout, ...]


@dataclass(frozen=True, kw_only=True)
class Planned(Item, Generic[Assets_co]):
    """Executed attempt at a layout, successful or not."""

    scene: Scene[Assets_co]
    layouts: tuple[Layout, ...]
    trajectory: Trajectory
    attempt: int = 0
    final: bool = True
    """True if no further attempt at this layout follows."""


@dataclass(frozen=True, kw_only=True)
class Rendered(Item, Generic[Assets_co]):
    """Visual variant of a plan. ``observations`` is lazy; iterate over it through :class:`TimedObservations`."""

    scene: Scene[Assets_co]
    layout: Layout
    trajectory: Trajectory
    labels: Labels | None
    observations: Iterator[Observation]
    attempt: int = 0
    final: bool = True


@dataclass(frozen=True, kw_only=True)
class Stored(Item):
    """Result of one attempt at one episode."""

    episode_id: str
    index: int
    variant: int
    attempt: int
    outcome: Outcome
    final: bool = True
    """True if no further attempt at this episode follows."""
    path: str = ""
    """File of the stored episode, relative to the dataset; empty for a failed attempt."""
    step_count: int = 0
    byte_count: int = 0


@contextmanager
def named_errors(stage: str, item: Item) -> Iterator[None]:
    """Add stage and episode to an error in the block; the innermost stage is kept."""
    try:
        yield
    except Exception as error:
        if not hasattr(error, "__notes__"):
            error.add_note(f"in stage {stage}, {item.label}")
        raise


class TimedObservations:
    """Observations of an episode; CPU time and errors while rendering them are attributed to the renderer."""

    def __init__(self, item: Rendered) -> None:
        self.cpu_time = 0.0
        """CPU time spent rendering so far [s]."""
        self._item = item

    def __iter__(self) -> Iterator[Observation]:
        while True:
            begin = time.thread_time()
            tick("render")
            try:
                with named_errors("render", self._item):
                    observation = next(self._item.observations, None)
            finally:
                self.cpu_time += time.thread_time() - begin
            if observation is None:
                return
            made = self._item.trajectory
            report_activity(f"images at {observation.start / made.rate:.0f} of {made.step_count / made.rate:.0f} s")
            yield observation


class Stage(ABC, Generic[In, Out]):
    """Lazy mapping of items to items: pulling one result takes no more inputs than needed."""

    version: ClassVar[int] = 1
    """Version of the output, raised when the output changes; a dataset is not continued with another version."""
    name: str

    @abstractmethod
    def process(self, item: In) -> Iterator[Out]:
        """Yield the results of one item."""

    def __call__(self, items: Iterator[In]) -> Generator[Out, None, None]:
        """Process items one after another.

        A result carries the CPU time of this stage and of the stages before it, unless the stage set the times itself.
        An error carries the stage and the episode in which it occurred.
        """
        for item in items:
            # Times of earlier stages go into the first result alone, so that a sum over results counts them once.
            untold = item.times
            results = self.process(item)
            try:
                while True:
                    begin = time.thread_time()
                    tick(self.name)
                    with named_errors(self.name, item):
                        result = next(results, None)
                    if result is None:
                        break
                    own = untold.get(self.name, 0.0) + time.thread_time() - begin
                    yield replace(result, times=untold | {self.name: own} | result.times)
                    untold = {}
            finally:
                if isinstance(results, Generator):
                    results.close()

    def pending(self) -> bool:
        """Return True while background work is pending; raises its error."""
        return False

    def close(self) -> None:
        """Release resources; called once, also after an error."""
        return None


class SceneLoader(Stage[Request, Scene[Assets]], Generic[Assets]):
    """Loads and validates the assets of an episode."""

    name = "load"

    @classmethod
    def open_shared(cls, task: object) -> object | None:
        """Open and check the assets that all episodes of a task share, before the run's folder is made.

        Returns:
            The shared assets; None when there are none.

        Raises:
            InputError: An asset is missing, or two of them do not fit together.
        """
        return None

    @classmethod
    def hashes_of(cls, task: object, assets: object | None) -> dict[str, str]:
        """Content hash of each asset of a task, by name, given what :meth:`open_shared` returned."""
        return {}


class Randomizer(Stage[Scene[Assets], Randomized[Assets]], Generic[Assets]):
    """Draws layouts."""

    name = "randomize"


class LaneWatch(Protocol[Assets_contra]):
    """Follows a planner that advances several episodes in turn."""

    def __call__(self, item: Randomized[Assets_contra] | None, spent: float) -> None:
        """Record the episode that is advanced next; None for a batch of motions of several episodes.

        Args:
            item: The episode.
            spent: Wall-clock time that it has had so far [s].
        """
        ...


class Planner(Stage[Randomized[Assets], Planned[Assets]], Generic[Assets]):
    """Plans and executes attempts."""

    name = "plan"

    def process_together(
        self, items: Iterator[Randomized[Assets] | None], *, lanes: int, watch: LaneWatch[Assets]
    ) -> Iterator[Planned[Assets]]:
        """Yield the attempts at several items, each as soon as it is made; this default makes one item after another.

        Args:
            items: Source of items, read whenever there is room for another one; None means that no item is available
                now.
            lanes: Largest number of items in progress.
            watch: Called whenever another item is advanced.
        """
        while (item := next(items, None)) is not None:
            watch(item, 0.0)
            yield from self.process(item)


class Renderer(Stage[Planned[Assets], Rendered[Assets]], Generic[Assets]):
    """Renders trajectories.

    It yields one :class:`Rendered` for each layout of an item, with its ``attempt`` and ``final``. A failed attempt
    has no labels and no observations, unless the run requests them. Observations are lazy and cover all steps in order.
    """

    name = "render"


class Writer(Stage[Rendered, Stored]):
    """Stores episodes and records every attempt.

    It takes all observations of an item before it yields one :class:`Stored`, for failed attempts too. Files are
    published through the run's sink (:mod:`nimbus.datagen.store.episode_sink`), so a killed process leaves no
    incomplete episode:

    - A failed attempt is recorded by ``record``, as the row that ``attempt_of`` makes.
    - A successful attempt is written into the sink's folder ``stage``, synced to disk, and published by ``commit`` as a
      ``StagedEpisode``. Its row names ``episodes/<id>.hdf5``, with the size and the content hash of level D1.

    An episode is an HDF5 file in the format of Nimbus, with at most its videos beside it: the ledger refuses other
    paths, because verification, replay, report and export read this format. Another format is an export. A writer that
    stores more than the episode derives from :class:`nimbus.datagen.store.writer.Hdf5Writer` and writes its files to a
    folder outside of the dataset; a run does not remove them, and no check reads them.
    """

    name = "store"


class Chain:
    """Stages in a row. Iteration pulls items through them; ``close`` closes every stage, the last one first."""

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
        """End pending work, then close every stage even if one raises; repeated calls do nothing."""
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
