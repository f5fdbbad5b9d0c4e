"""Evidence of nodes that an episode ends workers. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from nimbus.runner.cluster.node_record import Item

_NODES = 2
"""Number of nodes whose evidence gives an episode up: a single node may itself be broken."""


class PoisonVotes:
    """Evidence by episode and node, of episodes that are not given up."""

    def __init__(self) -> None:
        self._votes: dict[Item, dict[str, str]] = {}

    def record(self, item: Item, node: str, evidence: str) -> None:
        """Note the evidence of a node."""
        self._votes.setdefault(item, {})[node] = evidence

    def withdraw(self, node: str) -> None:
        """Drop all evidence of a node."""
        for item, votes in list(self._votes.items()):
            votes.pop(node, None)
            if not votes:
                del self._votes[item]

    def forget(self, item: Item) -> None:
        """Drop the evidence against an episode."""
        self._votes.pop(item, None)

    def by(self, node: str, group: str) -> set[int]:
        """Indices of a group that a node holds to be poison."""
        return {index for (name, index), votes in self._votes.items() if name == group and node in votes}

    def condemn(self, item: Item, *, able: Iterable[str], is_last: bool) -> bool:
        """Decide whether an episode is given up: on evidence from two nodes, or from all where no other can judge it.

        Args:
            item: The episode.
            able: Nodes that could make it.
            is_last: Nothing else is left to do, so that waiting for another node would not end.
        """
        votes = self._votes.get(item, {})
        return len(votes) >= _NODES or bool(votes) and is_last and all(node in votes for node in able)

    def evidence(self, item: Item) -> tuple[str, ...]:
        """Evidence against an episode, a line a node."""
        return tuple(f"{node}: {text}" for node, text in sorted(self._votes.get(item, {}).items()))

    @property
    def items(self) -> list[Item]:
        """Episodes with evidence against them."""
        return list(self._votes)
