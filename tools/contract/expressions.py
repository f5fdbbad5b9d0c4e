"""Values of expressions: an object of a class of Kit, a method, or an unknown value."""

from __future__ import annotations

import ast
from typing import Any

from tools.contract.calls import Calls
from tools.contract.names import Symbol
from tools.contract.scopes import OPAQUE, PLAIN, OwnClass, Value

_WARP = ("numpy",)
"""Attributes of results of the batched API: they are Warp arrays, which the contract does not describe."""
_CONTAINER = ("append", "clear", "get", "items", "keys", "pop", "values")


class Expressions(Calls):
    """Evaluates expressions to :class:`Value`, and checks all their parts."""

    def _annotated(self, node: ast.expr) -> Value:
        """Return an object of the annotated class; for ``X | None``, an object of X."""
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
        """Return the value of an expression, and check all its parts."""
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

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._assign(node.target, self.value(node.value))

    def generic_visit(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
            else:
                self.visit(child)
