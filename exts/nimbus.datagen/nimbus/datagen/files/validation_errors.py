"""Translation of pydantic's errors into one short sentence about one field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from nimbus.datagen.errors import suggest
from nimbus.datagen.files.quantities import Quantity, in_unit_of, quantity_of

Keys = tuple[str | int, ...]

_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "dict_type": "a mapping (key: value)",
    "mapping_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
    "tuple_type": "a list [a, b]",
    "list_type": "a list [a, b]",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "string_too_short": "at least {min_length} character(s)",
    "string_too_long": "at most {max_length} character(s)",
    "string_pattern_mismatch": "text like {pattern}",
    "too_short": "at least {min_length} {entries}",
    "too_long": "at most {max_length} {entries}",
    "none_required": "nothing",
    "union_tag_not_found": "a mapping with {discriminator}",
}
"""Description of the expected value by pydantic's error type; fields are filled in from the error's context."""

_BOUNDS = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}
"""Key of the bound in the error's context, by error type."""


@dataclass(frozen=True)
class FieldError:
    """One error: location, problem, fix."""

    keys: Keys
    what: str
    instead: str = ""
    at_key: bool = False
    missing: bool = False


@dataclass(frozen=True)
class _Found:
    """Error of pydantic with its location in the data, and with location and branch of its union, if any."""

    keys: Keys
    root: Keys | None
    branch: str | int
    error: Any
    written: Any
    """Value in the data at ``keys``, before conversion of a unit."""


def field_errors(error: ValidationError, model: type[BaseModel], data: Any) -> list[FieldError]:
    """Return every error of a failed validation; the branches of a union give one error.

    Args:
        error: Error raised by pydantic.
        model: Model of the validation, for its names.
        data: Validated data. Parts of a location that are not in the data are pydantic's own tags.
    """
    names = _Names(model, data)
    alone: list[FieldError] = []
    unions: dict[Keys, list[_Found]] = {}
    for item in error.errors(include_url=False):
        if item["type"] == "too_short" and len(item["input"]) >= item.get("ctx", {})["min_length"]:
            continue  # pydantic drops invalid entries, and then reports them as missing
        found = _locate(item, data)
        if found.root is None:
            alone.append(_complain(found, names))
        else:
            unions.setdefault(found.root, []).append(found)
    for founds in unions.values():
        if len({found.branch for found in founds}) > 1:
            alone.append(_complain_union(founds, names))
        else:  # the data determine the branch
            alone += [_complain(found, names) for found in founds]
    return alone


def _locate(item: Any, data: Any) -> _Found:
    keys: Keys = ()
    root: Keys | None = None
    branch: str | int = ""
    location = item["loc"]
    for index, part in enumerate(location):
        if part == "[key]":  # pydantic's tag for a mapping's key
            continue
        child = _child(data, part)
        if child is not _ABSENT or (item["type"] == "missing" and index == len(location) - 1):
            keys, data = (*keys, part), child
        elif root is None:
            root, branch = keys, part
    return _Found(keys, root, branch, item, data)


_ABSENT = object()


def _child(data: Any, key: str | int) -> Any:
    if isinstance(data, dict):
        return data.get(key, _ABSENT)
    if isinstance(data, (tuple, list)) and isinstance(key, int) and key < len(data):
        return data[key]
    return _ABSENT


def _complain_union(branches: list[_Found], names: _Names) -> FieldError:
    """Report the branch that got furthest; types refused at the same location are joined by ``or``."""
    depth = max(len(found.keys) for found in branches)
    deepest = [found for found in branches if len(found.keys) == depth]
    # The message of a custom validator, which runs after the type checks, is more specific than a refused type.
    spoken = [found for found in deepest if not _expected(found.error)]
    if spoken or len(deepest) == 1:
        return _complain((spoken or deepest)[0], names)
    phrases = [_expected(found.error) for found in deepest]
    joined = " or ".join(dict.fromkeys(phrases))
    first = deepest[0]
    choices = [choice for found in deepest for choice in _choices(found.error)]
    return FieldError(
        first.keys, f"expected {joined}, found {_show(first.error['input'])}", _hint(first.error, choices)
    )


def _complain(found: _Found, names: _Names) -> FieldError:
    item, keys = found.error, found.keys
    if item["type"] == "missing":
        return _missing(keys, item, names)
    if item["type"] == "extra_forbidden":
        instead = suggest(str(keys[-1]), names.at(keys[:-1]))
        return FieldError(keys, f"unknown key '{keys[-1]}'", instead, at_key=True)
    if item["type"] == "union_tag_invalid":
        name, tags = item["ctx"]["discriminator"].strip("'"), item["ctx"]["expected_tags"].split(", ")
        instead = suggest(item["ctx"]["tag"], [tag.strip("'") for tag in tags])
        return FieldError((*keys, name), f"unknown {name} '{item['ctx']['tag']}'", instead)
    if complaint := _out_of_bounds(found, names):
        return complaint
    if phrase := _expected(item, found.written):
        count = f" ({len(item['input'])} given)" if item["type"] in ("too_short", "too_long") else ""
        what = f"expected {phrase}, found {_show(found.written if item['type'] in _BOUNDS else item['input'])}{count}"
        return FieldError(keys, what, _hint(item, _choices(item)))
    context = item.get("ctx", {})
    what = str(context["error"]) if "error" in context else item["msg"]
    keys = (*keys, *context.get("at", ()))  # a check of several fields names the one to fix
    return FieldError(keys, what, str(context.get("instead", "")), at_key=item["loc"][-1:] == ("[key]",))


def _out_of_bounds(found: _Found, names: _Names) -> FieldError | None:
    """Describe a violated bound of a quantity that was written without a unit, and suggest a unit that would fit."""
    item, written = found.error, found.written
    bound = _BOUNDS.get(item["type"])
    quantity = names.quantity(found.keys) if bound and isinstance(written, (int, float)) else None
    if bound is None or quantity is None or not quantity.unit:
        return None
    limit, above = float(item["ctx"][bound]), bound in ("gt", "ge")
    fits = (unit for unit, factor in quantity.units[1:] if not above and written * factor <= limit)
    meant = next((f"did you mean '{written:g} {unit}'?" for unit in fits), "")
    return FieldError(found.keys, f"expected {_expected(item)} {quantity.unit}, found {_show(written)}", meant)


def _missing(keys: Keys, item: Any, names: _Names) -> FieldError:
    if isinstance(keys[-1], int):
        given, count = item["input"], names.entries(keys[:-1])
        what = f"expected {count or f'more than {len(given)}'} entries, found {_show(given)} ({len(given)} given)"
        return FieldError(keys[:-1], what)
    meaning = names.description(keys)
    instead = f"add '{keys[-1]}: …'" + (f" ({meaning})" if meaning else "")
    return FieldError(keys[:-1], f"'{keys[-1]}' is missing", instead, missing=True)


def _expected(item: Any, written: Any = None) -> str:
    context = item.get("ctx", {})
    if "expected_quantity" in context:
        return context["expected_quantity"]
    bounds = {name: f"{value:g}" if isinstance(value, float) else value for name, value in context.items()}
    if isinstance(written, str) and (name := _BOUNDS.get(item["type"])):
        bounds[name] = in_unit_of(written, context[name], most=name in ("lt", "le")) or bounds[name]
    entries = "entry" if 1 in (context.get("min_length"), context.get("max_length")) else "entries"
    return _EXPECTED.get(item["type"], "").format(entries=entries, **bounds)


def _choices(item: Any) -> list[str]:
    if item["type"] not in ("literal_error", "enum"):
        return []
    return [part.strip("' ") for part in item["ctx"]["expected"].replace(" or ", ", ").split(",")]


def _hint(item: Any, choices: Iterable[str]) -> str:
    """Suggest a similar choice for a misspelling; the sentence itself lists the choices."""
    value, choices = item["input"], list(choices)
    hint = suggest(value, choices) if isinstance(value, str) and choices else ""
    return hint.split("?")[0] + "?" if "?" in hint else ""


def _show(value: Any) -> str:
    if isinstance(value, dict):
        text = "{" + ", ".join(f"{key}: …" for key in value) + "}"
    elif isinstance(value, (tuple, list)):
        text = "[" + ", ".join(_show(entry) for entry in value) + "]"
    elif value is None or isinstance(value, bool):
        text = "nothing" if value is None else str(value).lower()
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


class _Names:
    """Names in a model's JSON Schema by location in the data."""

    def __init__(self, model: type[BaseModel], data: Any) -> None:
        self.schema, self.data = model.model_json_schema(), data

    def at(self, keys: Keys) -> list[str]:
        """Return the names of the fields allowed in the mapping at ``keys``."""
        return sorted({name for schema in self._schemas(keys) for name in schema.get("properties", {})})

    def description(self, keys: Keys) -> str:
        """Return the first line of the description of the field at ``keys``."""
        for schema in self._schemas(keys[:-1]):
            if field := schema.get("properties", {}).get(keys[-1]):
                return field.get("description", "").split("\n")[0].rstrip(".")
        return ""

    def entries(self, keys: Keys) -> int:
        """Return the required length of the list at ``keys``; 0 for a variable one."""
        return max((len(schema.get("prefixItems", ())) for schema in self._schemas(keys)), default=0)

    def quantity(self, keys: Keys) -> Quantity | None:
        """Return the quantity of the number at ``keys``; None for a plain number."""
        return next(filter(None, map(quantity_of, self._schemas(keys))), None)

    def _schemas(self, keys: Keys) -> list[dict[str, Any]]:
        data, schemas = self.data, self._branches(self.schema, self.data)
        for key in keys:
            data = _child(data, key)
            children = [child for schema in schemas for child in _children(schema, key)]
            schemas = [branch for child in children for branch in self._branches(child, data)]
        return schemas

    def _branches(self, schema: dict[str, Any], data: Any) -> list[dict[str, Any]]:
        """Return the schemas that may apply to the data, with references and unions resolved."""
        if reference := schema.get("$ref"):
            return self._branches(self.schema["$defs"][reference.rsplit("/", 1)[1]], data)
        if (tagged := schema.get("discriminator")) and isinstance(data, dict):
            chosen = tagged["mapping"].get(data.get(tagged["propertyName"]))
            return self._branches({"$ref": chosen}, data) if chosen else []
        choices = schema.get("anyOf", []) + schema.get("oneOf", []) + schema.get("allOf", [])
        return [branch for choice in choices for branch in self._branches(choice, data)] or [schema]


def _children(schema: dict[str, Any], key: str | int) -> list[dict[str, Any]]:
    if isinstance(key, int):
        entries = schema.get("prefixItems", [])
        child = entries[key] if key < len(entries) else schema.get("items")
    else:
        patterned = next(iter(schema.get("patternProperties", {}).values()), None)
        child = schema.get("properties", {}).get(key, patterned or schema.get("additionalProperties"))
    return [child] if isinstance(child, dict) else []
