"""Unambiguous names of the things in a scene, by noun, color, side, class or purpose."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from nimbus.datagen.propose.goal_graph import GoalGraph, Thing
from nimbus.datagen.propose.wording.lexicon import Lexicon, Noun

NameSort = Literal["category", "synonym", "side", "class", "purpose"]
_PLAIN = re.compile(r"[^\W_]([\w' -]{0,58}[^\W_])?")
"""Pattern of a category that can occur in a sentence; categories may come from third-party files."""


class KindLabel(Protocol):
    """Properties of a kind that its names use."""

    @property
    def category(self) -> str:
        """Common name, including the color."""
        ...

    @property
    def object_class(self) -> str:
        """Class of the kind."""
        ...

    @property
    def color(self) -> str:
        """Name of the color; empty without one."""
        ...


@dataclass(frozen=True)
class ThingName:
    """Name of a thing with its article, and its sort."""

    text: str
    sort: NameSort


class SceneNames:
    """Names of the things of a graph in one language.

    Args:
        graph: Graph with all things, because distractors can make names ambiguous.
        labels: Labels of kinds, by the name of the kind.
        words: Words of the language.
    """

    def __init__(self, graph: GoalGraph, labels: Mapping[str, KindLabel], words: Lexicon) -> None:
        self.words = words
        self.meanings: dict[str, set[str]] = defaultdict(set)
        """Things by their possible names, which are normalized and without an article."""
        known = all(category_without_color(labels[thing.kind]) in words.nouns for thing in graph.things)
        found = {thing.name: list(self._candidates(thing, labels[thing.kind], known)) for thing in graph.things}
        for thing in graph.things:
            for name in found[thing.name]:
                for text in self._variants(self.bare(name.text), thing.count):
                    self.meanings[text].add(thing.name)
            for noun in self._nouns(labels[thing.kind]):
                self.meanings[words.normalize(noun.head(words.words.language))].add(thing.name)
        self._names = {
            owner: tuple(name for name in names if len(self.meanings[self.bare(name.text)]) == 1)
            for owner, names in found.items()
        }
        for thing in graph.things:
            if not self._names[thing.name] and (exact := self._exact(thing, graph, labels)):
                self.meanings[self.bare(exact.text)] = {thing.name}
                self._names[thing.name] = (exact,)

    def names(self, thing: str, *sorts: NameSort) -> tuple[str, ...]:
        """Return the unambiguous names of a thing, of all or some sorts; empty if there are none."""
        return tuple(name.text for name in self._names[thing] if not sorts or name.sort in sorts)

    def bare(self, text: str) -> str:
        """Return a normalized name without its article."""
        article, _, rest = self.words.normalize(text).partition(" ")
        return rest if article in self.words.words.articles else f"{article} {rest}".strip()

    def _variants(self, bare: str, count: int) -> tuple[str, ...]:
        """Return the forms of a name: for several objects, its plural, alone and with a number or the word for both."""
        if count == 1:
            return (bare,)
        noun, words = bare.partition(" ")[2], self.words.words
        both = (f"{words.both} {noun}",) if count == 2 and words.both else ()
        return (noun, f"{words.numbers[count - 1]} {noun}", *both)

    def _nouns(self, label: KindLabel) -> tuple[Noun, ...]:
        base = category_without_color(label)
        if base in self.words.nouns:
            return self.words.nouns[base]
        is_fit = self.words.words.language == "en" and _PLAIN.fullmatch(base)
        return (Noun.parse(base, "en"),) if is_fit else ()

    def _candidates(self, thing: Thing, label: KindLabel, all_known: bool) -> Iterator[ThingName]:
        words, count = self.words.words, thing.count
        color, side = words.colors.get(label.color, ""), "" if thing.inside else words.sides.get(thing.place, "")
        for index, noun in enumerate(self._nouns(label)):
            sort: NameSort = "synonym" if index else "category"
            for tint in filter(None, (color,)):
                yield ThingName(noun.phrase(words, color=tint, count=count), sort)
            yield ThingName(noun.phrase(words, count=count), "synonym" if color else sort)
            if side and count == 1:
                yield ThingName(noun.phrase(words, color=color, side=side), "side")
        if not all_known or count > 1:
            return
        yield from self._described("class", label.object_class, words.classes)
        yield from self._described("purpose", category_without_color(label), words.purposes)

    def _described(self, sort: NameSort, key: str, table: Mapping[str, tuple[str, ...]]) -> Iterator[ThingName]:
        """Yield the names in a table that include a class or a category."""
        for text, covered in table.items():
            if key in covered:
                yield ThingName(f"{self.words.words.articles[0]} {text}", sort)

    def _exact(self, thing: Thing, graph: GoalGraph, labels: Mapping[str, KindLabel]) -> ThingName | None:
        """Return the full name of a thing with only ambiguous names, such as ``cup`` next to a ``plastic cup``."""
        others = {labels[one.kind].category for one in graph.things if one.name != thing.name}
        if labels[thing.kind].category in others:
            return None
        names = self._candidates(thing, labels[thing.kind], False)
        return next((name for name in names if name.sort == "category"), None)


def category_without_color(label: KindLabel) -> str:
    """Return the category of a kind without its color."""
    return label.category.removeprefix(f"{label.color} ") if label.color else label.category
