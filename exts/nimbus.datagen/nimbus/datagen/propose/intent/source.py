"""Language model as a source of goal graphs: it is asked again, with findings, until a graph is valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.language_model.client import BudgetSpent, LanguageModel
from nimbus.datagen.propose.catalogue import KindEntry
from nimbus.datagen.propose.goal_graph import GoalGraph
from nimbus.datagen.propose.intent.form import Intent, read_intent
from nimbus.datagen.propose.intent.offer import offer_kinds
from nimbus.datagen.propose.intent.question import intent_question
from nimbus.datagen.propose.planner import unreachable_goals

if TYPE_CHECKING:
    from nimbus.datagen.propose.proposals import Trial

_TITLES = 12
"""Largest number of earlier tasks' titles in a question."""
_FINDING = 300
"""Largest number of characters of a finding in a question."""


@dataclass
class ModelSource:
    """Goal graphs written by a model for a request."""

    model: LanguageModel
    catalogue: Mapping[str, KindEntry]
    request: str
    robot: str
    scene: str
    seed: int
    rounds: int = 3
    """Number of rounds with findings for one proposal; a finding may concern the form or the graph."""
    spent: str = field(default="", init=False)
    """Reason why the source is exhausted; empty while it may give more graphs."""
    _left: int = field(default=0, init=False)
    _earlier: Mapping[str, Any] = field(default_factory=dict, init=False)
    _titles: tuple[str, ...] = field(default=(), init=False)
    """Titles of earlier proposals, without those of the current one, which are to be corrected and not avoided."""
    _intents: dict[str, Intent] = field(default_factory=dict, init=False)
    """Earlier intents by the canonical form of their graphs."""
    _notes: list[dict[str, Any]] = field(default_factory=list, init=False)

    def draw(self, index: int) -> GoalGraph | None:
        """Ask for a graph; return None if all rounds failed, or if the budget of tokens is spent.

        Raises:
            InputError: The model is not available.
        """
        self._left, self._earlier = self.rounds + 1, {}
        self._titles = tuple(filter(None, (intent.title for intent in self._intents.values())))[-_TITLES:]
        return self._ask(index, ())

    def repair(self, trial: Trial, *, index: int, attempt: int) -> GoalGraph | None:
        """Ask for a graph that replaces a refused one.

        Raises:
            InputError: The model is not available.
        """
        found = unreachable_goals(trial.graph, self.catalogue) if trial.stage == "plan" else []
        found = found or [_joined(one.field, one.what, one.instead) for one in trial.findings]
        failed = [one for one in trial.attempts if not one.success]
        found += [_joined(f"in physics, {one.phase}", one.reason.replace("_", " "), one.detail) for one in failed]
        return self._ask(index, found)

    def notes(self) -> Iterator[dict[str, Any]]:
        """Yield the steps since the last call for the log: invalid replies with their reasons."""
        while self._notes:
            yield self._notes.pop(0)

    def wordings(self, graph: GoalGraph) -> tuple[str, ...]:
        """Return the model's wordings of a graph; their claims are not checked yet."""
        intent = self._intents.get(graph.canonical())
        return intent.instructions if intent else ()

    def _ask(self, index: int, findings: Sequence[str]) -> GoalGraph | None:
        offered = offer_kinds(self.catalogue, self.request, seed=self.seed, index=index)
        while self._left > 0 and not self.spent:
            self._left -= 1
            question = intent_question(
                offered,
                self.catalogue,
                self.request,
                robots=(self.robot,),
                scenes=(self.scene,),
                number=index,
                accepted=self._titles,
                earlier=self._earlier,
                findings=[found[:_FINDING] for found in findings],
            )
            try:
                answer = self.model.ask(question)
                if not answer.fault:
                    self._earlier = answer.value
                    return self._graph(answer.value, offered)
                fault = answer.fault
            except BudgetSpent as error:
                self.spent = str(error)
                return None
            except _Unfit as error:
                fault = str(error)
            number = self.rounds - self._left
            self._notes.append({"index": index, "round": number, "stage": "reply", "findings": [{"what": fault}]})
            findings = (fault,)
        return None

    def _graph(self, value: Mapping[str, Any], offered: Sequence[str]) -> GoalGraph:
        """Return the goal graph of a reply.

        Raises:
            _Unfit: The reply has no usable graph.
        """
        try:
            intent = read_intent(value, self.catalogue, offered, robots=(self.robot,), scenes=(self.scene,))
        except InputError as error:
            raise _Unfit(str(error)) from None
        name = intent.graph.canonical()
        if name in self._intents:
            raise _Unfit("a task with these goals was proposed before; write a different one")
        self._intents[name] = intent
        return intent.graph


class _Unfit(Exception):
    """Raised for a reply without a valid graph; the text of the exception is the finding."""


def _joined(*parts: str) -> str:
    return ": ".join(filter(None, parts))
