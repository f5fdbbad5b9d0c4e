"""Known values of names at each point of a file, and the findings."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from tools.contract.names import Contract, Symbol


@dataclass(frozen=True)
class Value:
    """Known properties of an expression's value."""

    kind: str = "plain"
    """Kind of the value: ``symbol``, ``instance``, ``method``, ``opaque`` (of Kit, but of unknown class, or a container
    of opaque values), ``own`` (a class of Nimbus or an object of it), ``function`` (of Nimbus) or ``plain`` (not of
    Kit)."""
    symbol: Symbol | None = None
    member: str = ""
    """Name of a method; ``class`` for a class of Nimbus; for a function, the kind of its result."""
    own: OwnClass | None = None


PLAIN, OPAQUE = Value(), Value("opaque")


@dataclass(eq=False)
class OwnClass:
    """A class of Nimbus that inherits from a class of Kit."""

    name: str
    bases: tuple[str, ...]
    names: set[str] = field(default_factory=set)
    attributes: dict[str, Value] = field(default_factory=dict)
    annotated: set[str] = field(default_factory=set)


@dataclass(frozen=True, order=True)
class Finding:
    """One use that contradicts the contract."""

    path: str
    line: int
    what: str
    """``unknown``, ``deprecated``, ``call`` or ``unchecked``, followed by the name."""


class Scopes(ast.NodeVisitor, ABC):
    """One file's names, findings and uses.

    Args:
        path: The file.
        contract: Contract to check against.
        classes: Classes of Nimbus, in all files, that inherit from classes of Kit.
        module: Dotted module name of the file.
    """

    def __init__(self, path: Path, contract: Contract, classes: dict[str, OwnClass], module: str) -> None:
        self.path, self.contract, self.classes, self.module = path, contract, classes, module
        self.findings: set[Finding] = set()
        self.uses: set[tuple[str, int, int, str]] = set()
        self.scopes: list[dict[str, Value]] = [{}]
        self.literals: dict[str, ast.expr] = {}
        self.owner: OwnClass | None = None
        self.in_class = False
        self.result = PLAIN

    def find(self, node: ast.AST, what: str) -> None:
        self.findings.add(Finding(str(self.path), getattr(node, "lineno", 0), what))

    def _used(self, node: ast.AST, what: str) -> None:
        self.uses.add((str(self.path), getattr(node, "lineno", 0), getattr(node, "col_offset", 0), what))

    def _check_module(self, node: ast.AST, name: str) -> None:
        self._used(node, name)
        if not self.contract.has_module(name):
            self.find(node, f"unknown module {name}")
        elif self.contract.is_deprecated_module(name):
            self.find(node, f"deprecated module {name}")

    def _from_module(self, node: ast.AST, module: str, name: str) -> Value:
        self._used(node, f"{module}.{name}")
        symbol = self.contract.name_in(module, name)
        if symbol is None:
            self.find(node, f"unknown name {module}.{name}")
            return PLAIN
        if symbol.kind == "module" and self.contract.is_deprecated_module(symbol.key):
            self.find(node, f"deprecated module {symbol.key}")
        if self.contract.defs.get(symbol.key, {}).get("deprecated"):
            self.find(node, f"deprecated name {module}.{name}")
        return PLAIN if symbol.kind in ("const", "external") else Value("symbol", symbol)

    def _bind(self, name: str, value: Value) -> None:
        self.scopes[-1][name] = value

    @abstractmethod
    def value(self, node: ast.expr) -> Value:
        """Find the value of an expression."""
