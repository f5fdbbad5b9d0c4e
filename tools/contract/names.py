"""Names of Isaac Sim, Kit and cuRobo in the contracts: modules, classes, methods, keywords, annotators, settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOTS = ("isaacsim", "omni", "carb", "usdrt", "curobo")
"""Packages that are not installed where Nimbus is tested: Kit's, and cuRobo."""

FILES = tuple(Path(__file__).parent / name for name in ("isaacsim.json", "omniverse_kit.json", "curobo.json"))
"""Folder of the part of the contracts that Nimbus uses, extracted by ``cut.py``."""


@dataclass(frozen=True)
class Symbol:
    """Meaning of a name."""

    kind: str
    """``module``, ``class``, ``function``, ``const`` or ``external``"""
    key: str
    """``package.module`` or ``package.module:Name``."""


@dataclass
class Contract:
    """Modules and definitions of all products, and the names that have been looked up so far."""

    modules: dict[str, dict[str, Any]] = field(default_factory=dict)
    defs: dict[str, dict[str, Any]] = field(default_factory=dict)
    consts: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    extensions: dict[str, Any] = field(default_factory=dict)
    experiences: list[str] = field(default_factory=list)
    known_extensions: dict[str, Any] = field(default_factory=dict)
    annotators: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)

    @classmethod
    def load(cls, paths: Iterable[Path] = FILES) -> Contract:
        """Read contract files; if two describe the same module, the first has precedence."""
        contract = cls()
        for path in paths:
            data = json.loads(path.read_text())
            for key in ("modules", "defs", "consts", "settings", "extensions", "known_extensions"):
                known = getattr(contract, key)
                for name, value in data.get(key, {}).items():
                    known.setdefault(name, value)
            contract.experiences += data.get("experiences", [])
            contract.annotators |= set(data.get("annotator_names", {}).get("any", ()))
        return contract

    def has_module(self, name: str) -> bool:
        """Check that a module, or a package of such modules, exists."""
        self.asked.add(name)
        return name in self.modules or any(module.startswith(name + ".") for module in self.modules)

    def has_extension(self, name: str) -> bool:
        """Check that an extension exists; Kit's core extensions are known only by their module."""
        return name in self.known_extensions or name in self.modules

    def is_deprecated_module(self, name: str) -> bool:
        """Check if a module's extension is deprecated."""
        extension = self.modules.get(name, {}).get("ext", "")
        return bool(self.extensions.get(extension, {}).get("deprecated"))

    def name_in(self, module: str, name: str) -> Symbol | None:
        """Find the meaning of a name in a module; None if the module does not define it, or only imports it by
        accident.
        """
        self.asked.add(module)
        entry = self.modules.get(module, {})
        target = entry.get("names", {}).get(name)
        if target is None:
            below = f"{module}.{name}"
            return Symbol("module", below) if self.has_module(below) else None
        if target.startswith("module:"):
            return Symbol("module", target.removeprefix("module:"))
        if target.startswith("external:"):
            return Symbol("external", target)
        if target == "const":
            return Symbol("const", f"{module}:{name}")
        return self.symbol(f"{module}:{name}" if target == "=" else target)

    def symbol(self, key: str) -> Symbol:
        """Return the symbol of a definition."""
        self.asked.add(key)
        found = self.defs.get(key)
        return Symbol(found["kind"], key) if found else Symbol("const", key)

    def lineage(self, key: str) -> Iterator[dict[str, Any]]:
        """Return a class and its bases, nearest first."""
        self.asked.add(key)
        if entry := self.defs.get(key):
            yield entry
            for base in entry.get("bases", ()):
                yield from self.lineage(base)

    def member(self, key: str, name: str) -> dict[str, Any] | None:
        """Return a method, property or attribute of a class by its name; None if there is none."""
        for entry in self.lineage(key):
            if name in entry.get("members", {}):
                return entry["members"][name]
            if name in entry.get("attrs", ()) or name in entry.get("enum", ()):
                return {"kind": "attribute"}
        return None

    def keywords(self, key: str) -> set[str]:
        """Return further keywords that the constructor of a class accepts."""
        return {name for entry in self.lineage(key) for name in entry.get("kwargs", ())}

    def annotator_names(self) -> set[str]:
        """Return the names of annotators that the sensor classes and replicator accept."""
        named = (value for key, value in self.consts.items() if key.endswith("sensor:ANNOTATOR"))
        return self.annotators | {name for value in named for name in value.get("literals", ())}

    def launch_options(self) -> set[str]:
        """Return the configuration keys that ``SimulationApp`` accepts."""
        return set(self.consts.get(LAUNCH_OPTIONS, {}).get("dict_keys", ()))


LAUNCH_OPTIONS = "isaacsim.simulation_app.simulation_app:SimulationApp.DEFAULT_LAUNCHER_CONFIG"


def misfit(signature: dict[str, Any], extra: set[str], count: int, keywords: set[str], *, open_ended: bool) -> str:
    """Describe the mistake in a call; empty if there is none.

    Args:
        signature: The contract's entry: ``params``, ``overloads``, ``seen``.
        extra: Further accepted keywords.
        count: Positional arguments given.
        keywords: Keywords given.
        open_ended: True if arguments were passed with ``*`` or ``**``, so missing ones cannot be determined.
    """
    seen = signature.get("seen", {})
    params = signature.get("params")
    candidates = signature.get("overloads") or ([params] if params is not None else [])
    complaints = [_mismatch(found, extra, seen, count, keywords, open_ended) for found in candidates]
    if candidates and not all(complaints):
        return ""
    if seen and (not candidates or signature.get("conflict")):
        most = max(seen.get("max_positional", 0), len(params or ()))
        known = set(seen.get("keywords", ())) | extra | {name for name, _, _ in params or ()}
        if count > most:
            return f"{count} positional arguments, seen with at most {most}"
        if unknown := keywords - known:
            return f"no keyword '{sorted(unknown)[0]}'"
        return ""
    return complaints[0] if complaints else ""


def _mismatch(
    params: list[list[Any]], extra: set[str], seen: dict[str, Any], count: int, keywords: set[str], open_ended: bool
) -> str:
    kinds = {name: kind for name, kind, _ in params}
    places = [name for name, kind, _ in params if kind in ("po", "pk")]
    if count > len(places) and "va" not in kinds.values():
        return f"{count} positional arguments, takes {len(places)}"
    named = {name for name, kind in kinds.items() if kind in ("pk", "ko")} - set(places[:count])
    further = extra | set(seen.get("keywords", ())) if "vk" in kinds.values() else set()
    if "vk" not in kinds.values() or further:
        for name in sorted(keywords - named - further):
            return f"no keyword '{name}'"
    for name, kind, has_default in params:
        required = not has_default and kind in ("po", "pk", "ko")
        if required and not open_ended and name not in keywords and name not in places[:count]:
            return f"'{name}' is missing"
    return ""
