"""List of a dataset's attempts for a panel, with filters; the dataset may still grow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger

ALL, STORED, FAILED = "all", "stored", "failed"
_MOST_REASONS = 200


@dataclass(frozen=True)
class DatasetList:
    """The attempts of a dataset.

    Args:
        folder: Folder of the dataset.
        attempts: Attempts by index, variant and attempt.
    """

    folder: Path
    attempts: tuple[Attempt, ...]

    @classmethod
    def open(cls, folder: Path) -> DatasetList:
        """Read the ledger, without disturbing a run in progress.

        Raises:
            InputError: There is no dataset.
        """
        if not (folder / "ledger.sqlite").is_file():
            raise InputError("there is no dataset here", where=str(folder), instead="give the folder of a run")
        ledger = Ledger(folder, read_only=True)
        try:
            return cls(folder, tuple(ledger.attempts()))
        finally:
            ledger.close()

    def reasons(self) -> list[tuple[str, int]]:
        """Return the reasons of failed attempts with their counts: the most frequent first, at most 200."""
        counts = Counter(attempt.reason for attempt in self.attempts if not attempt.success)
        return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:_MOST_REASONS]

    def filtered(self, *, outcome: str = ALL, reason: str = "") -> list[Attempt]:
        """Return attempts by outcome (``all``, ``stored``, ``failed``) and, if given, by reason."""
        wanted = {ALL: lambda _: True, STORED: lambda a: bool(a.path), FAILED: lambda a: not a.success}[outcome]
        return [a for a in self.attempts if wanted(a) and (not reason or a.reason == reason)]

    def file(self, attempt: Attempt) -> Path | None:
        """Return the file of an attempt; None if nothing was stored."""
        path = attempt.path or (attempt.failure.path if attempt.failure else "")
        return self.folder / path if path else None


def attempt_label(attempt: Attempt) -> str:
    """Describe an attempt in one line."""
    end = "stored" if attempt.path else "success" if attempt.success else f"{attempt.reason} in {attempt.phase}"
    return f"{attempt.idx:06d} v{attempt.variant} try {attempt.attempt + 1}: {end}, {attempt.duration:.1f} s"
