"""Wordings: sentences as spans of text, each with the numbers of the goals that it expresses."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from nimbus.datagen.propose.goal_graph import Goal, GoalGraph
from nimbus.datagen.propose.planner import order_goals
from nimbus.datagen.propose.wording.claims import find_false_claim
from nimbus.datagen.propose.wording.lexicon import LANGUAGES, Lexicon, open_lexicon
from nimbus.datagen.propose.wording.names import KindLabel, NameSort, SceneNames
from nimbus.datagen.random_streams import generator

STYLES = ("short", "polite", "attribute", "purpose", "steps")
LONGEST = 300
"""Largest number of characters of an instruction."""
_TOGETHER = 3
"""Largest number of clauses in one sentence."""
_TRIES = 6
"""Number of draws of a wording, because some results are too long or equal to others."""
_SLOT = re.compile(r"(\{[a-z]+\})")
_SORTS: Mapping[str, tuple[NameSort, ...]] = {"attribute": ("side", "class"), "purpose": ("purpose",)}


@dataclass(frozen=True)
class Span:
    """Part of a sentence."""

    text: str
    goals: tuple[int, ...] = ()
    """Numbers of the goals that the text expresses; empty for connecting words."""


@dataclass(frozen=True)
class Wording:
    """One instruction as spans of text."""

    language: str
    style: str
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """Final text, with capital letters and contractions."""
        text = open_lexicon(self.language).contract("".join(span.text for span in self.spans))
        return re.sub(r"(^[¿¡]?|[.!?] [¿¡]?)(\w)", lambda found: found[1] + found[2].upper(), text)

    @property
    def goals(self) -> frozenset[int]:
        """Numbers of the goals that the wording expresses."""
        return frozenset(number for span in self.spans for number in span.goals)


@dataclass(frozen=True)
class _Draft:
    """Data shared by all wordings of one graph in one language."""

    graph: GoalGraph
    names: SceneNames
    words: Lexicon
    order: Sequence[int]
    opened: Collection[str]

    def word(self, style: str, rng: np.random.Generator) -> Wording | None:
        """Draw a wording; return None if the style does not fit the graph."""
        called = self._called(style, rng)
        if called is None:
            return None
        clauses = list(self._clauses(style, called, rng))
        form = self.words.words
        if style == "steps":
            if len(clauses) < 2:
                return None
            firsts = [form.first, *[form.next] * (len(clauses) - 2), form.last]
            begun = zip(firsts, clauses, strict=True)
            spans = [[Span(_draw(words, rng)), *clause, Span(". ")] for words, clause in begun]
        elif style == "polite":
            if len(clauses) > _TOGETHER:
                return None
            before, _, behind = _draw(form.polite, rng).partition("{clauses}")
            spans = [[Span(before)], *self._joined(clauses, rng), [Span(behind)]]
        else:
            groups = [clauses[begin : begin + _TOGETHER] for begin in range(0, len(clauses), _TOGETHER)]
            spans = [span for group in groups for span in (*self._joined(group, rng), [Span(". ")])]
        flat = [span for group in spans for span in group]
        flat[-1] = Span(flat[-1].text.rstrip(), flat[-1].goals)
        return Wording(self.words.name, style, tuple(flat))

    def _called(self, style: str, rng: np.random.Generator) -> dict[str, str] | None:
        """Choose a name for each thing; return None if a thing has no name, or if the style excludes the graph."""
        called, is_special = {}, False
        for name in sorted({name for goal in self.graph.goals for name in _things(goal)}):
            special = self.names.names(name, *_SORTS[style]) if style in _SORTS else ()
            plain = self.names.names(name, "category") if rng.uniform() < 0.4 else ()
            usual = plain or self.names.names(name, "category", "synonym") or self.names.names(name)
            if not usual:
                return None
            # A sentence usually has only one uncommon name, because several would make it hard to understand.
            is_fit = bool(special) and (not is_special or rng.uniform() < 0.5)
            is_special = is_special or is_fit
            called[name] = _draw(special if is_fit else usual, rng)
        return called if is_special or style not in _SORTS else None

    def _clauses(self, style: str, called: Mapping[str, str], rng: np.random.Generator) -> Iterator[list[Span]]:
        """Yield the clauses in order; goals with equal relation and target share a clause."""
        goals, opened = self.graph.goals, set(self.opened)
        for (relation, target), group in groupby(self.order, key=lambda at: (goals[at].relation, goals[at].target)):
            numbers = tuple(group)
            if style == "steps" and relation == "in" and target in opened:
                opened.discard(target)
                yield list(self._fill(_draw(self.words.means, rng), (), [(called[target], ())], "", ""))
            objects = [(called[goals[at].object], (at,)) for at in numbers]
            patterns = self.words.clauses[relation]
            pattern = patterns[0] if style == "short" and rng.uniform() < 0.3 else _draw(patterns, rng)
            place = _draw(self.words.words.places[target], rng) if relation == "at" else ""
            yield list(self._fill(pattern, numbers, objects, called.get(target, ""), place))

    def _fill(
        self, pattern: str, goals: tuple[int, ...], objects: list[tuple[str, tuple[int, ...]]], target: str, place: str
    ) -> Iterator[Span]:
        for part in _SLOT.split(pattern):
            if part == "{object}":
                for index, (name, numbers) in enumerate(objects):
                    if index:
                        yield Span(self.words.words.joined[0] if index == len(objects) - 1 else ", ")
                    yield Span(name, numbers)
            elif part:
                yield Span({"{target}": target, "{place}": place}.get(part, part), goals)

    def _joined(self, clauses: Sequence[list[Span]], rng: np.random.Generator) -> list[list[Span]]:
        """Join clauses by conjunctions."""
        between = (Span(_draw(self.words.words.joined, rng) if index else "") for index in range(len(clauses)))
        return [[span, *clause] for span, clause in zip(between, clauses, strict=True)]


def _draw(choices: Sequence[str], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]


def _things(goal: Goal) -> tuple[str, ...]:
    return (goal.object,) if goal.relation == "at" or not goal.target else (goal.object, goal.target)


def word_goals(
    graph: GoalGraph,
    labels: Mapping[str, KindLabel],
    *,
    seed: int,
    count: int = 8,
    languages: Sequence[str] = LANGUAGES[:1],
    opened: Collection[str] = (),
) -> tuple[Wording, ...]:
    """Write different instructions for a graph; each is checked to claim exactly the graph's goals.

    Args:
        graph: Goal graph of the task.
        labels: Labels of kinds, by the name of the kind.
        seed: Seed of the choice of words.
        count: Largest number of instructions; languages and styles alternate.
        languages: Names of files in ``scenes/words``.
        opened: Things that the plan opens as a means for another goal.
    """
    found: dict[str, Wording] = {}
    task = graph.canonical()
    order = [graph.goals.index(goal) for goal in order_goals(graph)]
    drafts = [
        _Draft(graph, SceneNames(graph, labels, words), words, order, opened) for words in map(open_lexicon, languages)
    ]
    turns = [(draft, style) for style in STYLES for draft in drafts]
    for round_number in range(count):
        for draft, style in turns:
            for attempt in range(_TRIES if len(found) < count else 0):
                rng = generator(seed, "wording", task, draft.words.name, style, round_number, attempt)
                wording = draft.word(style, rng)
                if wording is None or len(wording.text) > LONGEST or wording.text in found:
                    continue
                if not find_false_claim(wording.text, graph, draft.names, opened=opened):
                    found[wording.text] = wording
                    break
    return tuple(found.values())
