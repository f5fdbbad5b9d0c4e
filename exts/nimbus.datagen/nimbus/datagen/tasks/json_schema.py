"""JSON Schema of task files, for completion and checks in editors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nimbus.datagen import registry
from nimbus.datagen.tasks.navigation_file import NavigationFile
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.statements import Statement
from nimbus.datagen.tasks.task_file import CommonFile, TaskFile, presets


def task_schema(*, skill_folders: Iterable[Path | str] = ()) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of task files, with every registered skill, condition and randomizer.

    A task file has either steps or ``navigate:``; kinds of goals and sources of scenes are the registered ones.
    """
    discover(skill_folders)
    definitions: dict[str, Any] = {}
    kinds = [_manipulation(definitions), _navigation(definitions)]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Nimbus task"}
    return head | {"oneOf": kinds, "$defs": definitions}


def _manipulation(definitions: dict[str, Any]) -> dict[str, Any]:
    """Define task files with steps."""
    reference, properties = _define_file(TaskFile, definitions)
    for kind in ("skill", "predicate"):
        _define_entry(kind, definitions)
    properties["steps"] |= _list("skill")
    properties["success"] |= _list("predicate")
    properties["cameras"] = _cameras(properties["cameras"], definitions)
    return reference


def _navigation(definitions: dict[str, Any]) -> dict[str, Any]:
    """Define task files of bodies that move through scenes."""
    reference, properties = _define_file(NavigationFile, definitions)
    sources = [
        _define(f"scene.{name}", registry.lookup("scene", name), definitions) for name in registry.names("scene")
    ]
    properties["scene"] = {"description": properties["scene"]["description"], "anyOf": sources}
    definitions["NavigateSettings"]["properties"]["to"]["enum"] = registry.names("goal")
    cameras = properties["cameras"]
    properties["cameras"] = _with_presets(cameras, {"type": "string"} | cameras.get("propertyNames", {}))
    return reference


def _define_file(model: type[CommonFile], definitions: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Define the files of a model, and return the reference to them and their properties."""
    schema = model.model_json_schema()
    definitions |= schema.pop("$defs", {})
    definitions[model.__name__] = schema
    properties = schema["properties"]
    properties["randomize"] = _randomizers(properties["randomize"], definitions)
    return {"$ref": f"#/$defs/{model.__name__}"}, properties


def _list(kind: str) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": {"$ref": f"#/$defs/{kind}"}}


def _block(kind: str) -> dict[str, Any]:
    """Return the schema of a list, or of a single entry."""
    return {"anyOf": [{"$ref": f"#/$defs/{kind}"}, _list(kind)]}


def _define_entry(kind: str, definitions: dict[str, Any]) -> None:
    """Define the entry of a statement kind, or of a composite of such statements."""
    composites = [registry.lookup("composite", name) for name in registry.names("composite")]
    models = {name: registry.lookup(kind, name) for name in registry.names(kind)}
    bare = [name for name, model in models.items() if not any(f.is_required() for f in model.model_fields.values())]
    entries = {name: _define(f"{kind}.{name}", model, definitions) for name, model in models.items()}
    definitions[kind] = {
        "anyOf": [
            {"enum": bare},
            {
                "type": "object",
                "properties": {name: _forms(model, entries[name], definitions) for name, model in models.items()},
                "additionalProperties": False,
                "minProperties": 1,
                "maxProperties": 1,
            },
            *(
                composite.schema(_block(kind), _block("predicate"))
                for composite in composites
                if kind in composite.kinds
            ),
        ]
    }


def _cameras(mapping: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of cameras: names of presets, or settings by name."""
    known = sorted(presets("cameras"))
    one, own = {"enum": known}, mapping["additionalProperties"]
    settings = definitions[own["$ref"].rsplit("/", 1)[1]]
    changed = settings | {"properties": settings["properties"] | {"preset": one}, "required": ["preset"]}
    some = "|".join(known)
    return _with_presets(
        mapping | {"additionalProperties": {"anyOf": [own, one, changed]}},
        {"type": "string", "pattern": rf"^\s*({some})(\s*\+\s*({some}))*\s*$"},
        {"type": "array", "minItems": 1, "items": one},
    )


def _with_presets(mapping: dict[str, Any], *forms: dict[str, Any]) -> dict[str, Any]:
    said = {name: mapping[name] for name in ("description", "default") if name in mapping}
    return said | {"anyOf": [mapping, *forms]}


def _randomizers(mapping: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of randomization: the name of a preset, or settings by randomizer."""
    known = registry.names("randomizer")
    entries = {name: _define(f"randomizer.{name}", registry.lookup("randomizer", name), definitions) for name in known}
    properties = {name: {"anyOf": [{"type": "null"}, entry]} for name, entry in entries.items()}
    own = mapping | {"type": "object", "properties": properties, "additionalProperties": False}
    return _with_presets(own, {"enum": sorted(presets("randomizations"))})


def _forms(model: type[Statement], entry: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a statement's value: all parameters by name, or the main parameter alone."""
    summary = {"description": model.summary()}
    if not model.main:
        return entry | summary
    main = definitions[entry["$ref"].rsplit("/", 1)[1]]["properties"][model.main]
    return {"anyOf": [main, entry]} | summary


def _define(name: str, model: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Add a model's schema to the definitions under its own name."""
    template = f"#/$defs/{name}.{{model}}"
    schema = model.model_json_schema(ref_template=template)
    for inner, definition in schema.pop("$defs", {}).items():
        definitions[f"{name}.{inner}"] = definition
    definitions[name] = schema
    return {"$ref": f"#/$defs/{name}"}
