"""A pipeline file: which registered component serves which of the five stages, and with what settings.

```yaml
load: usd
randomize: tabletop
plan+render: point_robot        # one component for two stages
store: {hdf5: {compression: 1}} # settings
```
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, create_model

from nimbus.datagen import registry
from nimbus.datagen.errors import suggest
from nimbus.datagen.files.scene_files import scene_file
from nimbus.datagen.files.strict_yaml import Document, Keys, StrictModel, parse, read
from nimbus.datagen.stages import Chain, Stage

STAGES = ("load", "randomize", "plan", "render", "store")


@dataclass(frozen=True)
class Component:
    """One entry of a pipeline file."""

    kind: str
    """Stage or stages it serves, as it is registered: ``plan``, ``plan+render``."""
    name: str
    settings: Any
    keys: Keys
    """Where its settings stand in the file."""


@dataclass(frozen=True)
class Pipeline:
    """Components for all five stages, in the stages' order."""

    name: str
    components: tuple[Component, ...]
    document: Document = field(repr=False)


class _Settings(StrictModel):
    """Base of the settings that a component's parameters are."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


def load_pipeline(name_or_path: str | Path, *, where: str = "") -> Pipeline:
    """Load a pipeline by name or path.

    Args:
        name_or_path: A name from ``scenes/pipelines`` or the path of a file.
        where: Where the name was given, for the error.

    Raises:
        InputError: No such pipeline, an unknown stage, or one that is served twice or not at all.
    """
    path = scene_file("pipelines", name_or_path, kind="pipeline", where=where)
    return _pipeline(read(path), path.stem)


def parse_pipeline(text: str, *, name: str = "pipeline") -> Pipeline:
    """Read the text of a pipeline file."""
    return _pipeline(parse(text, f"{name}.yaml"), name)


def build(pipeline: Pipeline, **context: Any) -> Chain:
    """Make the components of a pipeline and chain them.

    A component is a class (or function) registered under its stage's name, for example ``@register("store", "hdf5")``.
    It is called with those entries of the context that its parameters name. Its other parameters that have a default
    are its settings: the file may give them, and their annotations say what they take.

    Args:
        pipeline: Which components.
        context: What a run has to offer: the task, the seed, the folder, …

    Raises:
        InputError: An unknown component or setting. Components already made are closed.
    """
    chain = Chain([])
    try:
        for component in pipeline.components:
            chain.stages.append(_make(pipeline, component, context))
    except BaseException:
        chain.close()
        raise
    return chain


def check_components(pipeline: Pipeline, *, offered: Collection[str]) -> None:
    """Check the names and the settings of a pipeline's components, and make none.

    Args:
        pipeline: Which components.
        offered: Names of what :func:`build` will be given.

    Raises:
        InputError: An unknown component or setting.
    """
    for component in pipeline.components:
        _checked(pipeline, component, offered)


def _make(pipeline: Pipeline, component: Component, context: dict[str, Any]) -> Stage[Any, Any]:
    make, given = _checked(pipeline, component, context)
    wanted = inspect.signature(make).parameters
    return make(**{name: value for name, value in context.items() if name in wanted}, **given)


def _checked(pipeline: Pipeline, component: Component, offered: Collection[str]) -> tuple[Any, dict[str, Any]]:
    """What makes a component, and the settings that the file gives it."""
    document, known = pipeline.document, registry.names(component.kind)
    if component.name not in known:
        what = f"unknown component '{component.name}' for {component.kind}"
        raise document.error(component.keys, what, instead=suggest(component.name, known), at_key=True)
    make = registry.lookup(component.kind, component.name)
    settings = document.validate(_settings_model(make, offered), data=component.settings, at=component.keys)
    return make, {name: getattr(settings, name) for name in settings.model_fields_set}


def _settings_model(make: Any, offered: Collection[str]) -> type[_Settings]:
    types = get_type_hints(make.__init__ if inspect.isclass(make) else make, include_extras=True)
    fields: dict[str, Any] = {
        name: (types.get(name, Any), parameter.default)
        for name, parameter in inspect.signature(make).parameters.items()
        if name not in offered and parameter.default is not parameter.empty
    }
    return create_model("Settings", __base__=_Settings, **fields)


def _pipeline(document: Document, name: str) -> Pipeline:
    data = document.data
    if not isinstance(data, dict):
        raise document.error((), "expected a mapping (stage: component)")
    components: dict[str, Component] = {}
    for key, value in data.items():
        component = _component(document, key, value)
        for stage in component.kind.split("+"):
            if stage in components:
                raise document.error((key,), f"stage '{stage}' is served twice", at_key=True)
            components[stage] = component
    for stage in STAGES:
        if stage not in components:
            raise document.error((), f"stage '{stage}' is missing", instead=f"add '{stage}: <component>'")
    ordered = {component.kind: component for component in (components[stage] for stage in STAGES)}
    return Pipeline(name, tuple(ordered.values()), document)


def _component(document: Document, key: str, value: Any) -> Component:
    stages = key.split("+")
    for stage in stages:
        if stage not in STAGES:
            raise document.error((key,), f"unknown stage '{stage}'", instead=suggest(stage, STAGES), at_key=True)
    first = STAGES.index(stages[0])
    if tuple(stages) != STAGES[first : first + len(stages)]:
        what = f"'{key}' are not stages in a row"
        raise document.error((key,), what, instead=f"the order is {', '.join(STAGES)}", at_key=True)
    if isinstance(value, str):
        return Component(key, value, {}, (key,))
    if isinstance(value, dict) and len(value) == 1:
        (name, settings), *_ = value.items()
        return Component(key, name, {} if settings is None else settings, (key, name))
    what = "expected the name of one component"
    raise document.error((key,), what, instead=f"write '{key}: name' or '{key}: {{name: {{setting: value}}}}'")
