"""Calls of Kit's functions and classes: keywords, counts, and the names that are given as text."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tools.contract.names import Symbol, misfit
from tools.contract.scopes import OPAQUE, PLAIN, OwnClass, Scopes, Value

_PASSING = ("dict", "enumerate", "iter", "list", "next", "reversed", "sorted", "tuple", "zip")
"""Built-in functions whose results contain their arguments."""
_ANNOTATORS = {"get_annotator": "name", "attach_annotators": "annotators", "detach_annotators": "annotators"}
_SENSORS = ("TiledCameraSensor", "CameraSensor")


class Calls(Scopes):
    """Checks the arguments of calls."""

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
        """Return the value of a literal or of a module constant; None for others."""
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
