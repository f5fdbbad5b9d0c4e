"""The part of JSON Schema (draft 2020-12) that a task's schema uses, validated as in the standard."""

from __future__ import annotations

import re
from typing import Any

TYPES = {
    "object": dict,
    "array": (list, tuple),
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
LISTS = ("minItems", "maxItems", "prefixItems", "items")
OBJECTS = ("required", "minProperties", "maxProperties", "propertyNames", "properties", "patternProperties")
APPLIES: dict[str, Any] = {
    **dict.fromkeys(NUMERIC, (int, float)),
    **dict.fromkeys(LISTS, (list, tuple)),
    **dict.fromkeys((*OBJECTS, "additionalProperties"), dict),
    **dict.fromkeys(("pattern", "minLength"), str),
}
ANNOTATIONS = {"title", "description", "default", "$defs", "$schema", "discriminator"}


def valid(data: Any, schema: Any, root: dict[str, Any]) -> bool:
    """Check data against a schema; an unknown keyword is an error, so no rule is ignored."""
    if isinstance(schema, bool):
        return schema
    return all(_keyword(name, rule, data, schema, root) for name, rule in schema.items() if name not in ANNOTATIONS)


def _keyword(name: str, rule: Any, data: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if not isinstance(data, APPLIES.get(name, object)) or (name in NUMERIC and isinstance(data, bool)):
        return True
    match name:
        case "$ref":
            return valid(data, root["$defs"][rule.removeprefix("#/$defs/")], root)
        case "type":
            return isinstance(data, TYPES[rule]) and not (isinstance(data, bool) and rule in ("integer", "number"))
        case "enum":
            return data in rule
        case "const":
            return data == rule
        case "anyOf":
            return any(valid(data, branch, root) for branch in rule)
        case "oneOf":
            return sum(valid(data, branch, root) for branch in rule) == 1
        case "minimum":
            return data >= rule
        case "maximum":
            return data <= rule
        case "exclusiveMinimum":
            return data > rule
        case "exclusiveMaximum":
            return data < rule
        case "pattern":
            return re.search(rule, data) is not None
        case "minLength":
            return len(data) >= rule
        case "minItems":
            return len(data) >= rule
        case "maxItems":
            return len(data) <= rule
        case "prefixItems":
            return all(valid(entry, part, root) for entry, part in zip(data, rule, strict=False))
        case "items":
            rest = data[len(schema.get("prefixItems", ())) :]
            return all(valid(entry, rule, root) for entry in rest)
        case "required":
            return all(key in data for key in rule)
        case "minProperties":
            return len(data) >= rule
        case "maxProperties":
            return len(data) <= rule
        case "propertyNames":
            return all(valid(key, rule, root) for key in data)
        case "properties":
            return all(valid(data[key], part, root) for key, part in rule.items() if key in data)
        case "patternProperties":
            pairs = [(key, part) for key in data for pattern, part in rule.items() if re.search(pattern, key)]
            return all(valid(data[key], part, root) for key, part in pairs)
        case "additionalProperties":
            known = schema.get("properties", {})
            patterns = schema.get("patternProperties", {})
            rest = [key for key in data if key not in known and not any(re.search(p, key) for p in patterns)]
            return all(valid(data[key], rule, root) for key in rest)
    raise AssertionError(f"unknown keyword {name}")
