"""Checks of the project's own style rules; existing violations are counted in a baseline that may only shrink.

``python -m tools.lint_rules`` checks, ``--list RULE`` prints every violation of a rule, ``--update`` lowers the
baseline.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.sources import modules, other_sources, parse, relative

BASELINE = Path(__file__).with_name("lint_baseline.json")
_OPENINGS = {"what", "whether", "who", "how", "where", "of", "that", "which", "when"}
_CLAUSE = re.compile(rf'("""|\'\'\'|")[\s.,:;`]*({"|".join(_OPENINGS)})\b', re.IGNORECASE)
"""Possible docstring with such an opening; a file without any match is not parsed."""
_WORDS = re.compile(
    r"\b(who|whoever|nobody|somebody|everybody|anybody|tells?|told|says?|said|hears?|heard|mends?|mended"
    r"|anew|wish(?:es|ed)?|buried|bury)\b",
    re.IGNORECASE,
)
_ARGUMENT = re.compile(r"^\s*\**\w+: ", re.MULTILINE)
"""Entry of an ``Args:`` section; argument names are not prose."""
_WHAT = re.compile(r"\bwhat\b", re.IGNORECASE)
_WHAT_RATE = 0.002
"""Accepted rate of "what" among the words of a room's docstrings; comparable libraries have 0 to 0.0001."""
_TYPED_SEAMS = (
    "nimbus.datagen.plugin",
    "nimbus.datagen.stages",
    "nimbus.datagen.pipeline",
    "nimbus.datagen.tasks.statements",
)
"""Modules that authors of plug-ins and stages use, in addition to all skills, conditions and randomizers."""

Violation = tuple[Path, int, str]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a file's module, classes, functions and fields, with their lines."""
    tree = parse(path)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for statement in node.body:
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value.strip()


def check_openings() -> Iterator[Violation]:
    """Yield docstrings that open with a clause instead of a verb or a noun, also in tests and tools."""
    others = (path for path in other_sources() if _CLAUSE.search(path.read_text(encoding="utf-8")))
    for path in (*modules().values(), *others):
        for line, text in docstrings(path):
            words = text.split()
            if words and words[0].lower().strip(".,:;`") in _OPENINGS:
                yield path, line, text.split("\n")[0]


def check_words() -> Iterator[Violation]:
    """Yield docstrings that describe components as persons, or data flow as speech."""
    for path in modules().values():
        for line, text in docstrings(path):
            for match in _WORDS.finditer(_ARGUMENT.sub("", text)):
                yield path, line, match[0]


def check_what() -> Iterator[Violation]:
    """Yield docstrings with a clause of "what" instead of a noun, in rooms with more than 2 per 1,000 words."""
    found: dict[str, list[Violation]] = defaultdict(list)
    words: Counter[str] = Counter()
    for path in modules().values():
        for line, text in docstrings(path):
            words[room(path)] += len(text.split())
            found[room(path)] += [(path, line, text.split("\n")[0]) for _ in _WHAT.finditer(text)]
    for name, rows in found.items():
        yield from rows[math.ceil(_WHAT_RATE * words[name]) :]


def check_class_names() -> Iterator[Violation]:
    """Yield class names that are defined more than once in the project."""
    places: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    for path in modules().values():
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append((path, node.lineno))
    for name, found in places.items():
        yield from ((path, line, name) for path, line in found[1:])


def check_seams() -> Iterator[Violation]:
    """Yield public signatures of seams with ``Any``."""
    for name, path in modules().items():
        if not name.startswith((*_TYPED_SEAMS, "nimbus.skills", "nimbus.datagen.success", "nimbus.datagen.randomize")):
            continue
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                for annotation in (*(argument.annotation for argument in arguments), node.returns):
                    if annotation is not None and ast.unparse(annotation) == "Any":
                        yield path, node.lineno, node.name


def check_fixes() -> Iterator[Violation]:
    """Yield raised ``InputError``s without a suggested fix."""
    for path in modules().values():
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "InputError":
                if not any(keyword.arg in ("instead", "fix", None) for keyword in node.keywords):
                    yield path, node.lineno, ast.unparse(node)[:100]


RULES: dict[str, Callable[[], Iterator[Violation]]] = {
    "docstring-opening": check_openings,
    "word-list": check_words,
    "docstring-what": check_what,
    "class-name-twice": check_class_names,
    "any-at-seam": check_seams,
    "input-error-without-fix": check_fixes,
}


def room(path: Path) -> str:
    """Return the folder under which a file is counted: two levels below the library or runner, elsewhere its own."""
    parts = relative(path).removeprefix("exts/nimbus.datagen/nimbus/").split("/")[:-1]
    return "/".join(parts[:2])


def main() -> int:
    """Compare the counts with the baseline; return 1 if a count has grown, or is below its baseline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", choices=RULES, help="print every violation of one rule")
    parser.add_argument("--update", action="store_true", help="lower the baseline to today's counts")
    arguments = parser.parse_args()
    if arguments.list:
        for path, line, text in RULES[arguments.list]():
            sys.stdout.write(f"{relative(path)}:{line}: {text}\n")
        return 0
    found = {rule: list(check()) for rule, check in RULES.items()}
    counts = {rule: dict(sorted(Counter(room(path) for path, _, _ in rows).items())) for rule, rows in found.items()}
    baseline: dict[str, dict[str, int]] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    grown = [
        (rule, name)
        for rule in RULES
        for name, count in counts[rule].items()
        if count > baseline.get(rule, {}).get(name, 0)
    ]
    if baseline and grown:
        for rule, name in grown:
            allowed = baseline.get(rule, {}).get(name, 0)
            sys.stdout.write(f"{rule}: {counts[rule][name]} in {name}, at most {allowed}; see --list {rule}\n")
            rows = [row for row in found[rule] if room(row[0]) == name]
            sys.stdout.writelines(f"  {relative(path)}:{line}: {text}\n" for path, line, text in rows[:20])
        return 1
    if counts == baseline:
        return 0
    if not arguments.update:
        sys.stdout.write("fewer violations than the baseline: python -m tools.lint_rules --update\n")
        return 1
    BASELINE.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
