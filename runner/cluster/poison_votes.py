"""Evidence from nodes that an episode crashes workers. No side effects."""

from __future__ import annotations

from collections.abc import Iterable

from nimbus.runner.cluster.node_record import Item

_NODES = 2
"""Number of nodes whose evidence is needed to give up an episode; a single node may itself be broken."""


class PoisonVotes:
    """Evidence against open episodes, by node."""

    def __init__(self) -> None:
        self._votes: dict[Item, dict[str, str]] = {}

    def record(self, item: Item, node: str, evidence: str) -> None:
        """Record the evidence from a node against an episode."""
        self._votes.setdefault(item, {})[node] = evidence

    def withdraw(self, node: str) -> None:
        """Discard all evidence from a node."""
        for item, votes in list(self._votes.items()):
            votes.pop(node, None)
            if not votes:
                del self._votes[item]

    def forget(self, item: Item) -> None:
        """Discard the evidence against an episode."""
        self._votes.pop(item, None)

    def by(self, node: str, group: str) -> set[int]:
        """Return the indices of a group's episodes against which a node has given evidence."""
        return {index for (name, index), votes in self._votes.items() if name == group and node in votes}

    def condemn(self, item: Item, *, able: Iterable[str], is_last: bool) -> bool:
        """Return True if the evidence suffices to give up an episode.

        Args:
            item: Group and index of the episode.
            able: Names of the present nodes that can work on it.
            is_last: No other work is left. Evidence from all nodes in ``able`` then suffices, even from a single one.
        """
        votes = self._votes.get(item, {})
        return len(votes) >= _NODES or bool(votes) and is_last and all(node in votes for node in able)

    def evidence(self, item: Item) -> tuple[str, ...]:
        """Return the evidence against an episode, one line per node."""
        return tuple(f"{node}: {text}" for node, text in sorted(self._votes.get(item, {}).items()))

    @property
    def items(self) -> list[Item]:
        """Episodes against which there is evidence."""
        return list(self._votes)
