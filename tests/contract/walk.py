"""Follows what a file does with Kit's modules, and compares every name, keyword and call with the contract.

A value that the contract says nothing about is opaque: to use a member of it is a finding too, unless an annotation
says what it is. So a file without findings is a file of which everything was checked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from contract.names import ROOTS, Contract, Symbol, misfit

_SETTING = re.compile(r"/(?:app|rtx|omni|renderer|persistent|physics|exts|ngx)/[\w./\-]+")
_DOTTED = re.compile(r"(?:isaacsim|omni|carb)(?:\.\w+)+")
_OWN = ("/exts/nimbus.datagen", "/persistent/exts/nimbus.datagen")
_WARP = ("numpy",)
"""What results of the batched API have: they are Warp arrays, which the contract does not describe."""
_CONTAINER = ("append", "clear", "get", "items", "keys", "pop", "values")
_PASSING = ("dict", "enumerate", "iter", "list", "next", "reversed", "sorted", "tuple", "zip")
"""Built-in functions whose results hold what they were given."""
_ANNOTATORS = {"get_annotator": "name", "attach_annotators": "annotators", "detach_annotators": "annotators"}
_SENSORS = ("TiledCameraSensor", "CameraSensor")


@dataclass(frozen=True)
class Value:
    """What is known of an expression."""

    kind: str = "plain"
    """``symbol``, ``instance``, ``method``, ``opaque`` (of Kit, but of unknown class, or a container of such), ``own``
    (a class of ours or an object of it), ``function`` (of ours) or ``plain`` (nothing of Kit)."""
    symbol: Symbol | None = None
    member: str = ""
    """Name of a method; ``class`` of a class of ours; of a function the kind of its result."""
    own: OwnClass | None = None


PLAIN, OPAQUE = Value(), Value("opaque")


@dataclass(eq=False)
class OwnClass:
    """A class of ours that inherits from one of Kit's."""

    name: str
    bases: tuple[str, ...]
    names: set[str] = field(default_factory=set)
    attributes: dict[str, Value] = field(default_factory=dict)
    annotated: set[str] = field(default_factory=set)


@dataclass(frozen=True, order=True)
class Finding:
    """One use that does not agree with the contract."""

    path: str
    line: int
    what: str
    """``unknown``, ``deprecated``, ``call`` or ``unchecked``, and the name."""


def touches_kit(path: Path) -> bool:
    """Whether a file imports anything of Kit."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] in ROOTS for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in ROOTS:
            return True
    return False


def check(paths: Iterable[Path], contract: Contract, *, package: Path) -> tuple[list[Finding], int]:
    """Findings in some files, sorted, and how many uses of Kit were checked.

    Args:
        paths: Python files.
        contract: What there is.
        package: The folder that the files are imported from.
    """
    classes: dict[str, OwnClass] = {}
    ordered = sorted(paths)
    walks: list[_Walk] = []
    for _ in range(2):  # files use classes of each other
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


class _Walk(ast.NodeVisitor):
    """One file. Expressions are evaluated to :class:`Value`; functions after the code around them."""

    def __init__(self, path: Path, contract: Contract, classes: dict[str, OwnClass], module: str) -> None:
        self.path, self.contract, self.classes, self.module = path, contract, classes, module
        self.findings: set[Finding] = set()
        self.uses: set[tuple[str, int, int, str]] = set()
        self.scopes: list[dict[str, Value]] = [{}]
        self.literals: dict[str, ast.expr] = {}
        self.owner: OwnClass | None = None
        self.in_class = False
        self.result = PLAIN
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
        for _ in range(2):  # what one method stores, another uses
            for function in self.later:
                self._function(*function)

    def find(self, node: ast.AST, what: str) -> None:
        self.findings.add(Finding(str(self.path), getattr(node, "lineno", 0), what))

    def _used(self, node: ast.AST, what: str) -> None:
        self.uses.add((str(self.path), getattr(node, "lineno", 0), getattr(node, "col_offset", 0), what))

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

    def _assign(self, target: ast.AST, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
            if self.in_class and self.owner:
                self.owner.names.add(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._assign(part, OPAQUE if value.kind == "opaque" else PLAIN)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, value)
        elif isinstance(target, ast.Attribute):
            held = self.value(target.value)
            if held.kind == "own" and held.own:
                known = held.own.attributes.get(target.attr)
                inherited = self._own_member(held.own, target.attr)
                if inherited is None or target.attr in held.own.names:
                    held.own.names.add(target.attr)
                    if target.attr not in held.own.annotated and (known is None or known == PLAIN):
                        held.own.attributes[target.attr] = value
                else:
                    self._used(target, f"{held.own.name}.{target.attr}")
            else:
                self._member(target, held, target.attr, store=True)
        else:
            self.visit(target)

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

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._assign(node.target, self.value(node.value))

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

    def generic_visit(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
            else:
                self.visit(child)

    # Expressions

    def _annotated(self, node: ast.expr) -> Value:
        """An object of the annotated class; of ``X | None`` that of X."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        if isinstance(node, ast.BinOp):
            left, right = self._annotated(node.left), self._annotated(node.right)
            return left if left.kind != "plain" else right
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return OPAQUE if any(self._annotated(part) != PLAIN for part in parts) else PLAIN
        value = self.value(node)
        if value.kind == "own":
            return Value("own", own=value.own)
        if value.kind == "symbol" and value.symbol and value.symbol.kind == "class":
            return Value("instance", value.symbol)
        return PLAIN

    def value(self, node: ast.expr) -> Value:
        """What an expression is; everything in it is checked on the way."""
        match node:
            case ast.Name(id=name):
                return next((scope[name] for scope in reversed(self.scopes) if name in scope), PLAIN)
            case ast.Attribute(value=held, attr=name):
                return self._member(node, self.value(held), name)
            case ast.Call():
                return self._call(node)
            case ast.Await(value=inner):
                return self.value(inner)
            case ast.Subscript(value=held, slice=index):
                self.value(index)
                return OPAQUE if self.value(held).kind == "opaque" else PLAIN
            case ast.NamedExpr():
                self.visit_NamedExpr(node)
                return self.value(node.target)
            case ast.IfExp(test=test, body=body, orelse=other):
                self.value(test)
                values = self.value(body), self.value(other)
                return next((value for value in values if value.kind != "plain"), PLAIN)
            case ast.BoolOp(values=parts):
                values = [self.value(part) for part in parts]
                return next((value for value in values if value.kind != "plain"), PLAIN)
            case ast.Lambda(args=arguments, body=body):
                self.scopes.append({argument.arg: PLAIN for argument in arguments.args})
                self.value(body)
                self.scopes.pop()
                return PLAIN
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
        self.generic_visit(node)
        return PLAIN

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        self.scopes.append({})
        for loop in node.generators:
            items = self.value(loop.iter)
            self._assign(loop.target, OPAQUE if items.kind == "opaque" else PLAIN)
            for condition in loop.ifs:
                self.value(condition)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        values = [self.value(part) for part in parts]
        self.scopes.pop()
        return OPAQUE if any(value.kind in ("opaque", "instance") for value in values) else PLAIN

    def _own_member(self, own: OwnClass, name: str) -> tuple[str, dict[str, Any]] | None:
        for base in own.bases:
            if (found := self.contract.member(base, name)) is not None:
                return base, found
        return None

    def _member(self, node: ast.AST, held: Value, name: str, *, store: bool = False) -> Value:
        match held:
            case Value(kind="symbol", symbol=Symbol(kind="module", key=module)):
                return self._from_module(node, module, name)
            case Value(kind="symbol" | "instance", symbol=Symbol(kind="class", key=key)):
                return self._class_member(node, key, name, store=store)
            case Value(kind="own", own=OwnClass() as own):
                if name in own.names or not own.bases:
                    return own.attributes.get(name, PLAIN)
                found = self._own_member(own, name)
                if found is None:
                    if name not in vars(object):
                        self.find(node, f"unknown member {own.name}.{name}")
                    return PLAIN
                return self._class_member(node, found[0], name, store=store)
            case Value(kind="opaque"):
                if name in _CONTAINER:
                    return OPAQUE
                if name not in _WARP:
                    self.find(node, f"unchecked .{name} of something that the contract does not describe")
                return PLAIN
            case Value(kind="method") | Value(kind="symbol"):
                self.find(node, f"unchecked .{name} of a function")
        return PLAIN

    def _class_member(self, node: ast.AST, key: str, name: str, *, store: bool) -> Value:
        self._used(node, f"{key}.{name}")
        found = self.contract.member(key, name)
        if found is None:
            self.find(node, f"unknown member {key}.{name}")
            return PLAIN
        if found.get("deprecated"):
            self.find(node, f"deprecated member {key}.{name}")
        if found["kind"] in ("attribute", "property"):
            partial = any(entry.get("partial") for entry in self.contract.lineage(key))
            if store and found["kind"] == "property" and not found.get("set") and not partial:
                self.find(node, f"unknown setter {key}.{name}")
            if returned := found.get("returns"):
                return Value("instance", self.contract.symbol(returned))
            return PLAIN if found["kind"] == "attribute" else OPAQUE
        if found["kind"] == "class" and "params" not in found:
            return PLAIN
        return Value("method", Symbol("class", key), name)

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and self.owner and self.owner.bases:
            return Value("instance", Symbol("class", self.owner.bases[0]))
        if isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr", "hasattr") and node.args:
            held = self.value(node.args[0])
            if held.kind not in ("plain", "own"):
                self.find(node, f"unchecked {node.func.id} of something of Kit")
        called = self.value(node.func)
        given = [self.value(argument) for argument in node.args]
        for keyword in node.keywords:
            self.value(keyword.value)
        match called:
            case Value(kind="symbol", symbol=Symbol(kind="class") as symbol):
                signature = self.contract.member(symbol.key, "__init__") or {}
                self._arguments(node, symbol.key, signature, self.contract.keywords(symbol.key))
                return Value("instance", symbol)
            case Value(kind="symbol", symbol=Symbol(kind="function") as symbol):
                signature = self.contract.defs[symbol.key]
                self._arguments(node, symbol.key, signature, set())
                return self._result(signature)
            case Value(kind="method", symbol=Symbol() as symbol, member=name):
                signature = self.contract.member(symbol.key, name) or {}
                extra = self.contract.keywords(symbol.key) if name == "__init__" else set()
                self._arguments(node, f"{symbol.key}.{name}", signature, extra)
                return self._result(signature)
            case Value(kind="own", own=OwnClass() as own, member="class"):
                return Value("own", own=own)
            case Value(kind="function"):
                return Value(called.member, called.symbol, own=called.own)
            case Value(kind="opaque"):
                return OPAQUE
        if isinstance(node.func, ast.Name) and node.func.id in _PASSING:
            return OPAQUE if any(value.kind in ("opaque", "instance") for value in given) else PLAIN
        return PLAIN

    def _result(self, signature: dict[str, Any]) -> Value:
        returned = signature.get("returns")
        return Value("instance", self.contract.symbol(returned)) if returned in self.contract.defs else OPAQUE

    def _arguments(self, node: ast.Call, what: str, signature: dict[str, Any], extra: set[str]) -> None:
        self._used(node, f"{what}()")
        keywords = {keyword.arg for keyword in node.keywords if keyword.arg}
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        open_ended = starred or any(keyword.arg is None for keyword in node.keywords)
        count = sum(not isinstance(argument, ast.Starred) for argument in node.args)
        if wrong := misfit(signature, extra, count, keywords, open_ended=open_ended):
            self.find(node, f"call {what}: {wrong}")
        name = what.rsplit(":", 1)[-1]
        method = name.split(".")[-1]
        if name in _SENSORS:
            self._annotators(node, [keyword.value for keyword in node.keywords if keyword.arg == "annotators"])
        elif method in _ANNOTATORS:
            named = [keyword.value for keyword in node.keywords if keyword.arg == _ANNOTATORS[method]]
            self._annotators(node, named or node.args[:1])
        elif method == "get_data" and name.split(".")[0] in _SENSORS:
            self._annotators(node, node.args[:1])
        elif name == "SimulationApp":
            self._launch(node, node.args[:1])

    def _literal(self, node: ast.expr) -> object:
        """The value of a literal, or of a constant of the module."""
        if isinstance(node, ast.Name):
            node = self.literals.get(node.id, node)
        try:
            return ast.literal_eval(node)
        except ValueError:
            return None

    def _annotators(self, node: ast.AST, given: Sequence[ast.expr]) -> None:
        for expression in given:
            found = self._literal(expression)
            names = [found] if isinstance(found, str) else list(found) if isinstance(found, list | tuple) else None
            if names is None:
                self.find(node, "unchecked annotator: write its name, or a constant of this file")
            for name in names or ():
                self._used(node, f"annotator {name}")
                if name not in self.contract.annotator_names():
                    self.find(node, f"unknown annotator {name}")

    def _launch(self, node: ast.AST, given: Sequence[ast.expr]) -> None:
        for expression in given:
            if isinstance(expression, ast.Name):
                expression = self.literals.get(expression.id, expression)
            if not isinstance(expression, ast.Dict):
                self.find(node, "unchecked launch configuration: write a dictionary, or a constant of this file")
                continue
            for key in expression.keys:
                name = key.value if isinstance(key, ast.Constant) else None
                self._used(node, f"launch option {name}")
                if name not in self.contract.launch_options():
                    self.find(node, f"unknown launch option {name}")
