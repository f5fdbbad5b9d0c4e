"""Laws of a killed export, conversion or run: nothing is lost or torn, and the end is the same."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.datasets.export.publication import stage_of
from nimbus.datagen.store.verify import dataset_hashes, verify
from tests.support.cells import make_spec
from tests.support.dying import Dying, End, spread
from tests.support.reading import tree


@dataclass(kw_only=True)
class Tally:
    """Outcome of many kills of one kind."""

    kills: int = 0
    places: int = 0
    """Number of operations of a whole command, at any of which it may be killed."""
    lost: int = 0
    torn: int = 0
    different: int = 0
    """Number of datasets that differed at the end."""

    @property
    def is_good(self) -> bool:
        """True without any of these defects."""
        return not (self.lost or self.torn or self.different)


class Publication:
    """An export or a conversion, which exists completely or not at all.

    Args:
        dying: Runner of the command.
        words: Words of the command without ``--out``.
        folder: Folder to work in.
    """

    def __init__(self, dying: Dying, words: Iterable[str], folder: Path) -> None:
        self._dying, self._words, self._folder = dying, tuple(words), folder
        self.out = folder / "killed"
        clean = dying.run(*self._words, "--out", str(folder / "clean"), place=folder)
        assert clean and clean.code == 0, clean
        self._whole = tree(folder / "clean")
        self.tally = Tally(places=clean.count)

    def die(self, at: int) -> bool:
        """Run it and kill it at an operation; return True if it was killed before its end."""
        died = self._dying.run(*self._words, "--out", str(self.out), place=self._folder, at=at) is None
        self.tally.kills += died
        if self.out.exists():
            found = tree(self.out)
            self.tally.torn += found != self._whole
        return died

    def finish(self) -> None:
        """Run it to its end and compare every byte; then remove the result."""
        done = self._dying.run(*self._words, "--out", str(self.out), place=self._folder)
        is_same = done and done.code == 0 and tree(self.out) == self._whole and not stage_of(self.out).exists()
        self.tally.different += not is_same
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.rmtree(stage_of(self.out), ignore_errors=True)

    def kill(self, count: int) -> Tally:
        """Kill the process at ``count`` operations, spread over all; every second time, kill its successor, too."""
        for number, at in enumerate(_places(self.tally.places, count)):
            self.die(at)
            if number % 2:
                self.die(1 + at // 2)
            self.finish()
        return self.tally


class SerialRun:
    """A run in one process: acknowledged episodes stay, and the dataset equals that of an undisturbed run.

    Args:
        dying: Runner of the command.
        folder: Folder to work in.
        episodes: Number of episodes.
    """

    def __init__(self, dying: Dying, folder: Path, *, episodes: int = 6) -> None:
        self._dying, self._folder, self._episodes = dying, folder, episodes
        self._work = folder / "work"
        clean = self._run("clean")
        assert clean and clean.code == 0, clean
        self._whole = dataset_hashes(self._work / "clean")
        self.tally = Tally(places=clean.count)

    def _run(self, name: str, at: int = 0) -> End | None:
        self._work.mkdir(exist_ok=True)
        spec = make_spec(self._work / name, episodes=self._episodes)
        return self._dying.run("spec", spec.to_text(), place=self._work / name, at=at)

    def kill(self, count: int) -> Tally:
        """Kill the process at ``count`` operations, spread over all; every second time, kill its successor, too."""
        for number, at in enumerate(_places(self.tally.places, count)):
            known: set[str] = set()
            for place in (at, 1 + at // 2)[: 1 + number % 2]:
                self.tally.kills += self._run("killed", place) is None
                now = done_in(self._work / "killed")
                self.tally.lost += len(known - now)
                known |= now
            done = self._run("killed")
            found = verify(self._work / "killed")
            self.tally.lost += len(known - done_in(self._work / "killed"))
            self.tally.torn += len(found.problems)
            is_same = done and done.code == 0 and dataset_hashes(self._work / "killed") == self._whole
            self.tally.different += not is_same
            shutil.rmtree(self._work / "killed")
        return self.tally


_STORED = """
SELECT attempts.episode_id, path FROM attempts JOIN episodes USING (idx, variant) WHERE path != '' AND state = 'DONE'
"""


def done_in(folder: Path) -> set[str]:
    """Return the ids of the episodes that are stored according to the ledger, and check that their files exist."""
    path = folder / "ledger.sqlite"
    if not path.exists():
        return set()
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as ledger:
        if not list(ledger.execute("SELECT name FROM sqlite_master WHERE name = 'episodes'")):
            return set()
        found = ledger.execute(_STORED)
        return {name for name, file in found if (folder / file).is_file()}


def _places(places: int, kills: int) -> Iterator[int]:
    """Yield the operations of a number of kills; every third kill hits the same dataset again."""
    yield from spread(places, -(-2 * kills // 3))
