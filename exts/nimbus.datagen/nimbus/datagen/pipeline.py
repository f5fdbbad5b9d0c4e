"""Pipeline files: registered components of the five stages, with their settings.

```yaml
load: usd
randomize: tabletop
plan+render: point_robot        # one component for two stages
store: {hdf5: {compression: 1}} # settings
roles: fused                    # optional: a worker takes each episode through all stages; dynamic: roles change
```
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import create_model

from nimbus.datagen import registry
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.scene_files import scene_file
from nimbus.datagen.files.strict_yaml import Document, Keys, StrictModel, dotted, parse, read
from nimbus.datagen.files.yaml_types import find_unwritable, how_to_declare
from nimbus.datagen.random_streams import RUN
from nimbus.datagen.stages import Chain, Stage

if TYPE_CHECKING:
    from nimbus.datagen.tasks.task import BaseTask, NavigationTask, Task

STAGES = ("load", "randomize", "plan", "render", "store")
ROLES = ("dynamic", "fused")
"""Divisions of labor in a cell: workers that change between planning and rendering, or workers that run all stages."""


@dataclass(frozen=True)
class Component:
    """Entry of a pipeline file."""

    kind: str
    """Stage or stages for which it is registered, such as ``plan`` or ``plan+render``."""
    name: str
    settings: Any
    keys: Keys
    """Location of the component's settings in the file."""


@dataclass(frozen=True)
class Pipeline:
    """Components for all five stages, in the order of the stages."""

    name: str
    components: tuple[Component, ...]
    document: Document = field(repr=False)
    is_fused: bool = False
    """True if each worker of a cell takes an episode through all stages, for pipelines in which handing over plans
    costs more than it gains. The content of episodes is the same."""
    folder: Path | None = None
    """Folder of the file, at which paths in its settings begin; None for a text, whose paths begin in the current
    folder."""

    @property
    def content(self) -> Mapping[str, Any]:
        """Part of the file that determines the content of episodes."""
        return {key: value for key, value in self.document.data.items() if key != "roles"}


S = TypeVar("S", bound=StrictModel)
S_contra = TypeVar("S_contra", bound=StrictModel, contravariant=True)


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Values that a run provides to the components of its pipeline."""

    seed: int = 0
    split: str = RUN
    """Set of episodes from which to draw: those of runs, or those for evaluating policies."""
    task: BaseTask | None = None
    """Task of the run; None in a run without a task file."""
    device: str = "cpu"
    """``cpu`` or ``cuda``, for rendering."""
    stack: int | None = None
    """Number of steps to render together; None lets the renderer choose."""
    free_bytes: int = 0
    """Free memory of the GPU [bytes]; 0 if unknown."""
    planner: str = "ompl"
    """Registered name of the motion planner."""
    physics: str = "newton"
    """Registered name of the simulator that executes plans."""
    choices: Mapping[str, str] = field(default_factory=dict)
    """Choices of the command line that enter the provenance: ``sim``, ``physics``, ``planner``, ``device``, …"""
    assets: object | None = None
    """Scene that is already loaded, of the type that the load component makes."""
    ancestors: Mapping[str, str] = field(default_factory=dict)
    """Ancestors of the episodes, recorded in their provenance."""
    provenance: Provenance | None = None
    """Provenance of a scene that another process loaded."""
    dataset: object | None = None
    """Destination of the writer; see :func:`nimbus.datagen.store.episode_sink.shelf_of`."""
    overlap: bool = False
    """True if the end of an episode may be stored while the next episode is made."""
    synchronous: bool = False
    """True if no thread may store in the background."""
    render_failures: bool = False
    """True if failed attempts are rendered too."""
    keep_failures: bool = False
    """True if failed attempts are stored too."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings that the run chooses, by name; they replace those of the pipeline file in every component."""

    def need_any_task(self) -> BaseTask:
        """Return the task, of any kind.

        Raises:
            InputError: The run has no task.
        """
        if self.task is None:
            raise InputError(
                "this pipeline needs a task", where="--task", instead="give the name or path of a task file"
            )
        return self.task

    def need_task(self) -> Task:
        """Return the manipulation task (a task with steps).

        Raises:
            InputError: The run has no task, or a navigation task.
        """
        from nimbus.datagen.tasks.task import manipulation_of

        return manipulation_of(self.need_any_task())

    def need_navigation(self) -> NavigationTask:
        """Return the navigation task.

        Raises:
            InputError: The run has no task, or a task with steps.
        """
        from nimbus.datagen.tasks.task import NavigationTask

        if not isinstance(task := self.need_any_task(), NavigationTask):
            what = f"this pipeline needs a navigation task; '{task.name}' is a task with steps"
            raise InputError(what, where=task.path, instead="write navigate: for steps:, or choose another pipeline")
        return task


class NoSettings(StrictModel):
    """Settings of a component without settings."""


class StageComponent(Protocol[S_contra]):
    """Class with a method ``create`` that makes a component from the context of a run and from settings."""

    @property
    def create(self) -> Callable[[RunContext, S_contra], Stage[Any, Any]]:
        """Class method that creates the component."""
        ...


_settings_models: dict[tuple[str, str], type[StrictModel]] = {}
"""Models of settings by kind and name of the component."""


def register_component(kind: str, name: str, component: StageComponent[S], settings: type[S]) -> None:
    """Register a class as the component of a stage, or of several consecutive stages.

    ```python
    class MySettings(StrictModel):
        shadows: bool = True


    class MyRenderer(Renderer[VisibleAssets]):
        @classmethod
        def create(cls, context: RunContext, settings: MySettings) -> Self:
            return cls(device=context.device, shadows=settings.shadows)


    register_component("render", "mine", MyRenderer, MySettings)
    ```

    Args:
        kind: Stage, such as ``render``, or stages, such as ``plan+render``.
        name: Name in pipeline files.
        component: Class of the component, or another object with a method ``create``.
        settings: Model of the settings that a pipeline file may give. If they name files, a method
            ``seen_from(folder)`` returns them with paths that begin in the folder of the file.
    """
    registry.register(kind, name)(component)
    _settings_models[kind, name] = settings


def load_pipeline(name_or_path: str | Path, *, where: str = "") -> Pipeline:
    """Load a pipeline by name or path.

    Args:
        name_or_path: A name from ``scenes/pipelines`` or the path of a file.
        where: Location of the name, for the error.

    Raises:
        InputError: The pipeline does not exist, a stage is unknown, missing, or has two components.
    """
    path = scene_file("pipelines", name_or_path, kind="pipeline", where=where)
    return replace(_pipeline(read(path), path.stem), folder=path.parent.absolute())


def parse_pipeline(text: str, *, name: str = "pipeline") -> Pipeline:
    """Parse the text of a pipeline file."""
    return _pipeline(parse(text, f"{name}.yaml"), name)


def build(pipeline: Pipeline, context: RunContext) -> Chain:
    """Create the components of a pipeline and chain them.

    Args:
        pipeline: Names of components and their settings.
        context: Context of the run.

    Raises:
        InputError: A component or a setting is unknown; components already created are closed.
    """
    chain = Chain([])
    try:
        for component in pipeline.components:
            made, settings = _settings(pipeline, component, context)
            chain.stages.append(made.create(context, settings))
    except BaseException:
        chain.close()
        raise
    return chain


def preload(pipeline: Pipeline, context: RunContext) -> None:
    """Load the data that components of all processes share, before the processes are forked.

    A component's class may have a class method ``preload`` for this, which takes the context.

    Args:
        pipeline: Names of components and their settings.
        context: Context of the run, as :func:`build` will receive it.
    """
    for component in pipeline.components:
        made, _ = _settings(pipeline, component, context)
        if load := getattr(made, "preload", None):
            load(context)


def count_lanes(pipeline: Pipeline, context: RunContext) -> int:
    """Return the number of episodes that the planner advances together.

    A component's class may have a class method ``lane_count`` for this, which takes the context.

    Args:
        pipeline: Names of components and their settings.
        context: Context of the run.
    """
    made = (_settings(pipeline, component, context)[0] for component in pipeline.components)
    return max((count(context) for part in made if (count := getattr(part, "lane_count", None))), default=1)


def check_components(pipeline: Pipeline, context: RunContext) -> None:
    """Check the names and settings of a pipeline's components, without creating any.

    Args:
        pipeline: Names of components and their settings.
        context: Context of the run, as :func:`build` will receive it.

    Raises:
        InputError: A component or a setting is unknown.
    """
    for component in pipeline.components:
        _settings(pipeline, component, context)


def _settings(
    pipeline: Pipeline, component: Component, context: RunContext
) -> tuple[StageComponent[StrictModel], StrictModel]:
    """Return the class of a component and its settings, in which those of the run replace those of the file."""
    document, known = pipeline.document, registry.names(component.kind)
    if component.name not in known:
        what = f"unknown component '{component.name}' for {component.kind}"
        raise document.error(component.keys, what, instead=suggest(component.name, known), at_key=True)
    made = registry.lookup(component.kind, component.name)
    if (model := _settings_models.get((component.kind, component.name))) is None:
        what = f"component '{component.name}' is registered without settings"
        raise document.error(component.keys, what, instead="register it with register_component", at_key=True)
    data = component.settings
    chosen = {name: value for name, value in context.settings.items() if name in model.model_fields}
    if chosen:
        _validate(document, _without(model, chosen), data, at=component.keys)
        data = data | chosen
    settings = _validate(document, model, data, at=component.keys)
    if pipeline.folder is None or (move := getattr(settings, "seen_from", None)) is None:
        return made, settings
    # Another user may have a program or policy of the same path in the current folder. The run's paths are its own.
    return made, move(pipeline.folder).model_copy(update={name: getattr(settings, name) for name in chosen})


def _validate(document: Document, model: type[S], data: Any, *, at: Keys) -> S:
    """Validate settings; an error in a field of a type that no file holds states how to declare it."""
    try:
        return document.validate(model, data=data, at=at)
    except InputError as error:
        name = error.diagnostic.field.removeprefix(f"{dotted(at)}.").partition("[")[0].partition(".")[0]
        if name in model.model_fields and (kind := find_unwritable(model.model_fields[name].annotation)):
            what = f"{model.__name__}.{name} is declared as {kind.__name__}, which is not a type of YAML"
            raise InputError(what, where=error.where, instead=how_to_declare(kind)) from None
        raise


def _without(model: type[StrictModel], names: Collection[str]) -> type[StrictModel]:
    """Return a model of settings without those that the run chooses, so that a file cannot set them."""
    fields: dict[str, Any] = {
        name: (field.annotation, field) for name, field in model.model_fields.items() if name not in names
    }
    return create_model(model.__name__, __base__=StrictModel, **fields)


def _pipeline(document: Document, name: str) -> Pipeline:
    data = document.data
    if not isinstance(data, dict):
        raise document.error((), "expected a mapping (stage: component)")
    components: dict[str, Component] = {}
    if (roles := data.get("roles", ROLES[0])) not in ROLES:
        raise document.error(("roles",), f"unknown roles {roles!r}", instead=f"write {' or '.join(ROLES)}")
    for key, value in data.items():
        if key == "roles":
            continue
        component = _component(document, key, value)
        for stage in component.kind.split("+"):
            if stage in components:
                raise document.error((key,), f"stage '{stage}' has two components", at_key=True)
            components[stage] = component
    for stage in STAGES:
        if stage not in components:
            raise document.error((), f"stage '{stage}' is missing", instead=f"add '{stage}: <component>'")
    ordered = {component.kind: component for component in (components[stage] for stage in STAGES)}
    return Pipeline(name, tuple(ordered.values()), document, is_fused=roles == "fused")


def _component(document: Document, key: str, value: Any) -> Component:
    stages = key.split("+")
    for stage in stages:
        if stage not in STAGES:
            raise document.error((key,), f"unknown stage '{stage}'", instead=suggest(stage, STAGES), at_key=True)
    first = STAGES.index(stages[0])
    if tuple(stages) != STAGES[first : first + len(stages)]:
        what = f"'{key}' are not consecutive stages"
        raise document.error((key,), what, instead=f"the order is {', '.join(STAGES)}", at_key=True)
    if isinstance(value, str):
        return Component(key, value, {}, (key,))
    if isinstance(value, dict) and len(value) == 1:
        (name, settings), *_ = value.items()
        return Component(key, name, {} if settings is None else settings, (key, name))
    what = "expected the name of one component"
    raise document.error((key,), what, instead=f"write '{key}: name' or '{key}: {{name: {{setting: value}}}}'")
