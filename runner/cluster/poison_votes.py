"""Evidence of nodes that an episode ends workers. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from nimbus.runner.cluster.node_record import Item

_NODES = 2
"""Number of nodes whose evidence is needed to give up an episode, because a single node may itself be broken."""


class PoisonVotes:
    """Evidence by episode and node, for episodes not given up."""

    def __init__(self) -> None:
        self._votes: dict[Item, dict[str, str]] = {}

    def record(self, item: Item, node: str, evidence: str) -> None:
        """Record the evidence of a node."""
        self._votes.setdefault(item, {})[node] = evidence

    def withdraw(self, node: str) -> None:
        """Discard all evidence of a node."""
        for item, votes in list(self._votes.items()):
            votes.pop(node, None)
            if not votes:
                del self._votes[item]

    def forget(self, item: Item) -> None:
        """Discard the evidence against an episode."""
        self._votes.pop(item, None)

    def by(self, node: str, group: str) -> set[int]:
        """Return the indices of a group that a node considers poison."""
        return {index for (name, index), votes in self._votes.items() if name == group and node in votes}

    def condemn(self, item: Item, *, able: Iterable[str], is_last: bool) -> bool:
        """Return True if an episode is to be given up: on evidence from two nodes, or from all that can make it.

        Args:
            item: The episode.
            able: Nodes that could make it.
            is_last: True if no other work is left, so that another node may never come.
        """
        votes = self._votes.get(item, {})
        return len(votes) >= _NODES or bool(votes) and is_last and all(node in votes for node in able)

    def evidence(self, item: Item) -> tuple[str, ...]:
        """Return the evidence against an episode, one line per node."""
        return tuple(f"{node}: {text}" for node, text in sorted(self._votes.get(item, {}).items()))

    @property
    def items(self) -> list[Item]:
        """Return the episodes with evidence against them."""
        return list(self._votes)
