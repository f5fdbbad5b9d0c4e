"""Static analysis of a file's use of Kit's modules: compares every name, keyword and call with the contract.

A value that the contract does not describe is opaque. Using a member of an opaque value is also a finding, unless an
annotation states its class. Thus a file without findings has been checked completely.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from tools.contract.expressions import Expressions
from tools.contract.names import ROOTS, Contract, Symbol
from tools.contract.scopes import OPAQUE, PLAIN, Finding, OwnClass, Value

_SETTING = re.compile(r"/(?:app|rtx|omni|renderer|persistent|physics|exts|ngx)/[\w./\-]+")
_DOTTED = re.compile(r"(?:isaacsim|omni|carb)(?:\.\w+)+")
_OWN = ("/exts/nimbus.datagen", "/persistent/exts/nimbus.datagen")


def touches_kit(path: Path) -> bool:
    """Return True if a file imports a part of Kit."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] in ROOTS for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in ROOTS:
            return True
    return False


def check(paths: Iterable[Path], contract: Contract, *, package: Path) -> tuple[list[Finding], int]:
    """Return the sorted findings in some files, and the number of checked uses of Kit.

    Args:
        paths: Python files.
        contract: Contract to check against.
        package: Folder from which the files are imported.
    """
    classes: dict[str, OwnClass] = {}
    ordered = sorted(paths)
    walks: list[_Walk] = []
    for _ in range(2):  # files use each other's classes
        walks = [_Walk(path, contract, classes, _module(path, package)) for path in ordered]
        for walk in walks:
            walk.run()
    findings = {finding for walk in walks for finding in walk.findings}
    return sorted(findings), len({use for walk in walks for use in walk.uses})


def _module(path: Path, package: Path) -> str:
    inside = path.relative_to(package) if path.is_relative_to(package) else Path(path.name)
    return ".".join(inside.with_suffix("").parts)


_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Later: TypeAlias = tuple[_Function, list[dict[str, Value]], OwnClass | None, Value]


class _Walk(Expressions):
    """Analysis of one file, statement by statement; functions are analyzed after the surrounding code."""

    def __init__(self, path: Path, contract: Contract, classes: dict[str, OwnClass], module: str) -> None:
        super().__init__(path, contract, classes, module)
        self.later: list[_Later] = []

    def run(self) -> None:
        tree = ast.parse(self.path.read_text())
        self._strings(tree)
        for statement in tree.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                if isinstance(target, ast.Name):
                    self.literals[target.id] = statement.value
            self.visit(statement)
        for _ in range(2):  # one method may use values that another stores
            for function in self.later:
                self._function(*function)

    # Strings: settings, extensions, experiences

    def _strings(self, tree: ast.AST) -> None:
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                self._string(node, node.value)

    def _string(self, node: ast.AST, text: str) -> None:
        contract = self.contract
        if _SETTING.fullmatch(text) and not text.startswith(_OWN):
            self._used(node, text)
            contract.asked.add(text)
            if text not in contract.settings:
                self.find(node, f"unknown setting {text}")
        if _DOTTED.fullmatch(text):
            self._used(node, text)
            contract.asked.add(text)
            if contract.extensions.get(text, {}).get("deprecated"):
                self.find(node, f"deprecated extension {text}")
            known = text in contract.known_extensions or text.removesuffix(".kit") in contract.experiences
            if not known and not contract.has_module(text):
                self.find(node, f"unknown extension {text}")

    # Names

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.split(".")[0]
            if root not in ROOTS:
                self._bind(alias.asname or root, PLAIN)
                continue
            self._check_module(node, alias.name)
            self._bind(alias.asname or root, Value("symbol", Symbol("module", alias.name if alias.asname else root)))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for alias in node.names:
            name = alias.asname or alias.name
            if module.split(".")[0] not in ROOTS:
                own = self.classes.get(f"{module}:{alias.name}")
                self._bind(name, Value("own", own=own, member="class") if own else PLAIN)
                continue
            self._check_module(node, module)
            self._bind(name, self._from_module(node, module, alias.name))

    # Statements

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._assign(target, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.value(node.value)
        value, target = self._annotated(node.annotation), node.target
        self._assign(target, value)
        is_any = isinstance(node.annotation, ast.Name) and node.annotation.id == "Any"
        if isinstance(target, ast.Attribute) and not is_any and (own := self.value(target.value).own):
            own.annotated.add(target.attr)

    def visit_For(self, node: ast.For) -> None:
        items = self.value(node.iter)
        self._assign(node.target, OPAQUE if items.kind == "opaque" else PLAIN)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, value)
        for statement in node.body:
            self.visit(statement)

    def visit_Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            value = self.value(node.value)
            if value.kind in ("symbol", "instance", "method", "opaque") and self.result == PLAIN:
                self.find(node, "unchecked result: annotate the function with its class")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        bases = [self.value(base) for base in node.bases]
        keys = tuple(value.symbol.key for value in bases if value.kind == "symbol" and value.symbol)
        outer, name = self.owner, f"{self.module}:{node.name}"
        if keys:
            self.owner = self.classes.setdefault(name, OwnClass(node.name, keys))
            self.owner.names |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            self.owner.names |= {part.name for part in node.body if isinstance(part, ast.AsyncFunctionDef)}
        else:
            self.owner = OwnClass(node.name, ())
        self._bind(node.name, Value("own", own=self.owner, member="class") if keys else PLAIN)
        self.scopes.append({})
        before, self.in_class = self.in_class, True
        for statement in node.body:
            self.visit(statement)
        self.in_class = before
        self.scopes.pop()
        self.owner = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = [self.value(decorator) for decorator in node.decorator_list]
        result = self._annotated(node.returns) if node.returns else PLAIN
        value = Value("function", result.symbol, result.kind, result.own)
        if decorators and any(isinstance(part, ast.Name) and part.id == "property" for part in node.decorator_list):
            value = result
        if self.in_class and self.owner:
            self.owner.attributes[node.name] = value
        else:
            self._bind(node.name, value)
        scopes = self.scopes[:-1] if self.in_class else self.scopes
        self.later.append((node, list(scopes), self.owner, result))

    visit_AsyncFunctionDef = visit_FunctionDef  # pyright: ignore[reportAssignmentType]

    def _function(self, node: _Function, scopes: list[dict[str, Value]], owner: OwnClass | None, result: Value) -> None:
        before = self.scopes, self.owner, self.in_class, self.result, self.later
        self.scopes, self.owner, self.in_class, self.result, self.later = [*scopes, {}], owner, False, result, []
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        for place, argument in enumerate(arguments):
            value = self._annotated(argument.annotation) if argument.annotation else PLAIN
            if owner and place == 0 and argument.arg == "self":
                value = Value("own", own=owner)
            self._bind(argument.arg, value)
        for statement in node.body:
            self.visit(statement)
        for inner in self.later:
            self._function(*inner)
        self.scopes, self.owner, self.in_class, self.result, self.later = before
