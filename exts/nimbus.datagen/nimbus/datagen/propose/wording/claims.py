"""Claims of a sentence: its goals and their order. Text that cannot be parsed makes the sentence invalid."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from nimbus.datagen.propose.goal_graph import Goal, GoalGraph
from nimbus.datagen.propose.planner import precedes
from nimbus.datagen.propose.wording.lexicon import Lexicon, open_lexicon
from nimbus.datagen.propose.wording.names import SceneNames

_MOST_LETTERS = 1000
"""Largest number of characters of a parsed sentence."""
_PUT = ("in", "on", "beside", "left_of", "right_of", "in_front_of", "behind", "at")
"""Relations whose verb may be omitted in the next clause: put the cup on the tray and the fork beside it."""


@dataclass(frozen=True)
class _Clause:
    """Compiled pattern of a clause for one relation."""

    relation: str
    form: re.Pattern[str]
    places: Mapping[str, str]
    omits_verb: bool


@cache
def _clauses(name: str) -> tuple[_Clause, ...]:
    words = open_lexicon(name)
    thing, many = r"<(\d+)>", re.escape(words.normalize(words.words.joined[0]))
    places, spots = (
        {words.normalize(text): place for place, texts in sides.items() for text in texts}
        for sides in (words.words.places, words.words.spots)
    )
    slots = {
        "object": rf"(?P<object><\d+>(?:(?: {many})? <\d+>)*)",
        "target": thing.replace("(", "(?P<target>", 1),
        "place": f"(?P<place>{_any(places)})",
        "spot": f"(?P<place>{_any(spots)})",
    }
    both = (*words.words.clauses.items(), *words.words.read.items())
    patterns = [(relation, text) for relation, texts in both for text in texts]
    patterns += [("means", text) for text in words.words.means]
    found = []
    for relation, text in patterns:
        parts = [_part(part, words, slots) for part in text.split(" ")]
        form = re.compile(" ".join(parts) + r"(?![\w-])")
        found.append(_Clause(relation, form, places | spots, text.startswith("{object}")))
    return tuple(found)


def _part(part: str, words: Lexicon, slots: Mapping[str, str]) -> str:
    if part.startswith("{"):
        return slots[part.strip("{}")]
    return f"(?:{_any(words.normalize(choice.replace('_', ' ')) for choice in part.split('/'))})"


def _any(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(texts, key=lambda text: (-len(text), text))))


@cache
def _fillers(name: str) -> re.Pattern[str]:
    words = open_lexicon(name)
    form = words.words
    frames = [part for frame in form.polite for part in frame.split("{clauses}")]
    texts = (*form.fillers, *form.joined, *form.first, *form.next, *form.last, *frames)
    known = {words.normalize(text) for text in texts} - {""}
    return re.compile(rf"^(?:(?:{_any(known)})(?![\w-]) ?)*")


def read_goals(text: str, names: SceneNames) -> tuple[list[Goal], str]:
    """Return the goals that a sentence claims, in order.

    A clause that opens a thing counts as the goal ``open``, even if opening is only a means for another goal.

    Returns:
        The goals, and the reason why the sentence cannot be parsed, which is empty if it can.
    """
    if len(text) > _MOST_LETTERS:
        return [], f"it has {len(text)} characters; the limit is {_MOST_LETTERS}"
    words = names.words
    things: list[frozenset[str]] = []

    def number(found: re.Match[str]) -> str:
        things.append(frozenset(names.meanings[found["name"]]))
        return f"<{len(things) - 1}>"

    articles = _any(words.words.articles)
    known = rf"(?<![\w-])(?:(?:{articles}) )?(?P<name>{_any(names.meanings)})(?![\w-])"
    rest = re.sub(known, number, words.normalize(re.sub(r"[<>]", "", text)))
    for index, meant in enumerate(things):
        if len(meant) > 1:
            return [], f"name {index + 1} is ambiguous: {' or '.join(sorted(meant))}"
    only = [next(iter(meant)) for meant in things]
    goals: list[Goal] = []
    while rest := _fillers(words.name).sub("", rest, count=1).strip():
        has_verb = bool(goals) and goals[-1].relation in _PUT
        matches = [
            (clause, found)
            for clause in _clauses(words.name)
            if (found := clause.form.match(rest)) and (has_verb or not clause.omits_verb)
        ]
        if not matches:
            shown = re.sub(r"<(\d+)>", lambda found: only[int(found[1])], rest)
            return [], f"'{shown[:80]}' is not understood"
        clause, found = max(matches, key=lambda pair: (pair[1].end(), pair[0].relation != "means"))
        fields = found.groupdict()
        target = only[int(fields["target"])] if fields.get("target") else clause.places.get(fields.get("place", ""), "")
        relation = "open" if clause.relation == "means" else clause.relation
        goals += [Goal(relation, only[int(at)], target) for at in re.findall(r"\d+", fields["object"])]
        rest = rest[found.end() :].strip()
    return goals, ""


def find_false_claim(text: str, graph: GoalGraph, names: SceneNames, *, opened: Collection[str] = ()) -> str:
    """Return the first claim of a sentence that is false or missing for a graph; empty if the sentence is true.

    Args:
        text: Sentence to check.
        graph: Goal graph of the task.
        names: Names of the graph's things in the language of the sentence.
        opened: Things that may be opened as a means for another goal.
    """
    claimed, fault = read_goals(text, names)
    if fault:
        return fault
    means = {Goal("open", name) for name in opened}
    wanted = set(graph.goals)
    for goal in claimed:
        if goal not in wanted | means:
            return f"it claims {_shown(goal)}, which is not a goal"
    for goal in graph.goals:
        if goal not in claimed:
            return f"it does not name the goal {_shown(goal)}"
    for index, later in enumerate(claimed):
        for earlier in claimed[index + 1 :]:
            if precedes(earlier, later) and not precedes(later, earlier):
                return f"it names {_shown(later)} before {_shown(earlier)}"
    return ""


def _shown(goal: Goal) -> str:
    return f"{goal.relation}({', '.join(filter(None, (goal.object, goal.target)))})"
