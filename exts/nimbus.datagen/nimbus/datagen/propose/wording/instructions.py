"""Instructions of a task file: wordings from templates, and a model's wordings with the same claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nimbus.datagen.errors import InputError
from nimbus.datagen.propose.catalogue import KindEntry
from nimbus.datagen.propose.goal_graph import GoalGraph
from nimbus.datagen.propose.traits import movable_part
from nimbus.datagen.propose.wording.claims import find_false_claim
from nimbus.datagen.propose.wording.lexicon import LANGUAGES, open_lexicon
from nimbus.datagen.propose.wording.names import SceneNames
from nimbus.datagen.propose.wording.sentences import LONGEST, word_goals

_COUNT = 8
"""Number of wordings from templates per language."""


@dataclass(frozen=True)
class InstructionWriter:
    """Writer of instructions in some languages."""

    languages: tuple[str, ...]
    seed: int

    @classmethod
    def check(cls, languages: Sequence[str], *, seed: int) -> InstructionWriter:
        """Make a writer for some languages; English by default.

        Raises:
            InputError: A language is unknown.
        """
        for name in languages:
            open_lexicon(name)
        return cls(tuple(dict.fromkeys(languages)) or LANGUAGES[:1], seed)

    def write(self, graph: GoalGraph, catalogue: Mapping[str, KindEntry], others: Sequence[str] = ()) -> list[str]:
        """Write the instructions for a task file, in which braces are doubled.

        Args:
            graph: Goal graph of the task.
            catalogue: Catalogue entries of its kinds.
            others: Wordings of a model; those that claim exactly the goals are kept, and come first.

        Raises:
            InputError: A thing of a goal has no unambiguous name.
        """
        opened = opened_on_the_way(graph, catalogue)
        names = [SceneNames(graph, catalogue, open_lexicon(language)) for language in self.languages]
        true = [
            text
            for text in others
            if len(text) <= LONGEST and any(not find_false_claim(text, graph, known, opened=opened) for known in names)
        ]
        count = _COUNT * len(self.languages)
        own = word_goals(graph, catalogue, seed=self.seed, count=count, languages=self.languages, opened=opened)
        if not own and (unnamed := [name for name in sorted(graph.concerned) if not names[0].names(name)]):
            what = f"'{unnamed[0]}' has no unambiguous name"
            raise InputError(what, where="things", instead="use another kind for it, or give its place")
        texts = dict.fromkeys((*true, *(one.text for one in own)))
        return [text.replace("{", "{{").replace("}", "}}") for text in texts]


def opened_on_the_way(graph: GoalGraph, catalogue: Mapping[str, KindEntry]) -> frozenset[str]:
    """Return the closed things that must be opened because something is put into them."""
    closed = {one.name for one in graph.things if one.state != "open" and movable_part(catalogue[one.kind])}
    return frozenset(goal.target for goal in graph.goals if goal.relation == "in" and goal.target in closed)
