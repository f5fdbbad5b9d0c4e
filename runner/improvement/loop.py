"""Settings of an improvement, paths of its files, and admission rules between versions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from msgspec import Meta

from nimbus.datagen.episode.trajectory import FAULTS
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import refuse_links
from nimbus.datagen.store.episode_file.content_check import combine
from nimbus.datagen.store.folder import OTHER_OUT
from nimbus.datagen.store.info import INFO_NAME
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import FILE_NAME, Ledger
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.evaluation.results import NAME as EVALUATION_NAME

NAME = "improvement.json"
SPLIT = "improvement"
"""Split of the rollouts' layouts, which neither other runs nor evaluations draw from."""
PART = 20
"""Number of layouts in a part of a round or of an evaluation, which roles without other work share; about ten seconds
of work."""
OBJECTIVES = ("dagger", "awr", "dagger+awr")
_MORE = ("rounds",)
"""Settings that may be increased when an improvement is continued."""

Rounds: TypeAlias = Annotated[int, Meta(ge=1, le=1000)]
Amount: TypeAlias = Annotated[int, Meta(ge=0, le=10_000_000)]


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """Settings that determine the output of an improvement."""

    task: str
    """Name or path of the task file."""
    task_hash: str
    seed: int = 0
    rounds: Rounds = 3
    episodes: Amount = 50
    """Demonstrations of round 0."""
    rollouts: Amount = 50
    """Layouts that the policy tries in each round."""
    layouts: Amount = 100
    """Number of held-out layouts for the evaluation of each version; 0 for no evaluation."""
    objective: str = "dagger"
    staleness: Amount = 0
    """Lag of the policy that makes rollouts [versions]: version ``k - 1 - staleness`` makes those for version k."""
    steps: Amount = 2000
    """Training steps of version 0."""
    round_steps: Amount = 1500
    """Training steps of each further version, which starts from the previous version."""
    execute: Amount = 8
    beta: float = 0.2
    """Difference in advantage that multiplies a row's weight by e (AWR)."""
    discount: float = 0.995
    """Factor by which the value of a success falls with each step that it took (AWR)."""
    proposal: str = ""
    """Id of the proposal of the task, for the lineage."""


@dataclass(frozen=True)
class LayoutPart:
    """Layouts of a round or of an evaluation that one role rolls out at a time."""

    folder: Path
    """Folder that the role locks; the dataset is in it."""
    indices: tuple[int, ...]
    """Indices of the layouts."""

    @property
    def rollouts(self) -> Path:
        """Dataset of its rollouts."""
        return self.folder / "rollouts"

    @property
    def is_done(self) -> bool:
        """True if all layouts of the part have an outcome."""
        return len(settled_attempts(self.rollouts)) >= len(self.indices)


@dataclass(frozen=True)
class Improvement:
    """Folder and settings of one improvement.

    Round 0 has the demonstrations instead of rollouts. Each round has rows, a version of the policy and an evaluation.
    """

    folder: Path
    settings: LoopSettings

    @classmethod
    def read(cls, folder: Path) -> Improvement:
        """Read the settings of a folder.

        Raises:
            InputError: The folder holds no improvement.
        """
        if not (folder / NAME).is_file():
            raise InputError(
                "there is no improvement", where=str(folder), instead="give the folder of a 'nimbus improve' run"
            )
        return cls(folder, read_typed(LoopSettings, folder / NAME))

    def begin(self) -> None:
        """Write the settings, or compare them with those already in the folder.

        Raises:
            InputError: The folder holds something else, or an improvement with other settings.
        """
        if (self.folder / NAME).exists():
            refuse_links(self.folder)
            found, wanted = (asdict(loop.settings) for loop in (Improvement.read(self.folder), self))
            for name, value in wanted.items():
                if name in _MORE and value >= found[name] or value == found[name]:
                    continue
                what = f"holds an improvement with {name.replace('_', ' ')} {found[name]}, not {value}"
                raise InputError(
                    what, where=str(self.folder), instead=f"{OTHER_OUT}, or give the same {name.replace('_', ' ')}"
                )
        elif self.folder.is_dir() and (strangers := sorted(path.name for path in self.folder.iterdir())):
            what = f"holds '{strangers[0]}' and no {NAME}: not an improvement"
            raise InputError(what, where=str(self.folder), instead=f"{OTHER_OUT} that is new or empty")
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_text(self.folder / NAME, to_json(self.settings, indent=1) + "\n")

    @property
    def rounds(self) -> range:
        """Numbers of all rounds, starting with 0 for the demonstrations."""
        return range(self.settings.rounds + 1)

    def round(self, number: int) -> Path:
        """Folder of a round."""
        return self.folder / "rounds" / f"{number}"

    @property
    def demonstrations(self) -> Path:
        """Dataset of the demonstrations."""
        return self.folder / "demonstrations"

    def rollouts(self, number: int) -> Path:
        """Folder of a round's rollouts, with a dataset for each part."""
        return self.round(number) / "rollouts"

    def corrections(self, number: int) -> Path:
        """Dataset of a round's corrections."""
        return self.round(number) / "corrections"

    def rows(self, number: int) -> Path:
        """File of a round's rows."""
        return self.round(number) / "rows.npz"

    def policy(self, version: int) -> Path:
        """Folder of a published version."""
        return self.folder / "policies" / f"v{version:03d}"

    def evaluation(self, version: int) -> Path:
        """Folder of the evaluation of a version."""
        return self.round(version) / "evaluation"

    def evaluation_parts(self, version: int) -> list[LayoutPart]:
        """Parts of an evaluation, which several roles may process at the same time."""
        return _parts(self.evaluation(version), range(self.settings.layouts))

    def rollout_parts(self, number: int) -> list[LayoutPart]:
        """Parts of a round's rollouts, which several roles may process at the same time."""
        return _parts(self.rollouts(number), self.indices(number))

    def indices(self, number: int) -> range:
        """Layouts of a round's rollouts; no two rounds share one."""
        count = self.settings.rollouts
        return range((number - 1) * count, number * count) if number else range(self.settings.episodes)

    def has_rollouts(self, number: int) -> bool:
        """Check whether all rollouts of a round exist; for round 0, all demonstrations."""
        if self.rows(number).is_file():
            return True
        if not number:
            return len(settled_attempts(self.demonstrations)) >= self.settings.episodes
        return all(part.is_done for part in self.rollout_parts(number))

    def acting_version(self, number: int) -> int:
        """Version that makes the rollouts of a round: always the oldest one that the staleness allows.

        The newest published version would depend on the speed of the learner.
        """
        return max(0, number - 1 - self.settings.staleness)

    def is_published(self, version: int) -> bool:
        """Check whether a version is published."""
        return self.policy(version).is_dir()

    def may_roll_out(self, number: int) -> bool:
        """Check whether the rollouts of a round may begin."""
        return not number or self.is_published(self.acting_version(number))

    def may_learn(self, version: int) -> bool:
        """Check whether all training rows of a version exist, and the version from which it starts."""
        return all(self.rows(number).is_file() for number in range(version + 1)) and (
            not version or self.is_published(version - 1)
        )

    def published(self) -> int:
        """Number of published versions."""
        return next(version for version in range(len(self.rounds) + 1) if not self.is_published(version))

    def unevaluated(self) -> list[int]:
        """Versions, published or not, without an evaluation."""
        wanted = self.rounds if self.settings.layouts else ()
        return [version for version in wanted if not (self.evaluation(version) / EVALUATION_NAME).is_file()]


def demonstrations_hash(loop: Improvement) -> str:
    """Return one hash over the demonstrations of an improvement."""
    stored = settled_attempts(loop.demonstrations).values()
    return combine({one.episode_id: one.sha256 for one in stored if one.path})[:16]


def settled_attempts(folder: Path) -> dict[int, Attempt]:
    """Return the last attempt at each index of a dataset that needs no more work."""
    if not (folder / INFO_NAME).exists() or not (folder / FILE_NAME).exists():
        return {}
    try:
        with closing(Ledger(folder, read_only=True)) as ledger:
            return {attempt.idx: attempt for attempt in ledger.attempts() if attempt.final or attempt.path}
    except InputError:  # the dataset is still being made; a damaged one is refused by the run that writes into it
        return {}


def settled_rollouts(loop: Improvement, number: int) -> dict[int, tuple[Path, Attempt]]:
    """Return the last attempt at each layout of a round that needs no more work, with its dataset."""
    folders = [part.rollouts for part in loop.rollout_parts(number)]
    return {index: (folder, one) for folder in folders for index, one in settled_attempts(folder).items()}


def failed_indices(loop: Improvement, number: int) -> list[int]:
    """Return the layouts of a round at which a rollout failed, except those with a fault of the policy."""
    found = settled_rollouts(loop, number).items()
    return [index for index, (_, one) in found if not one.success and one.reason not in FAULTS and one.failure]


def _parts(folder: Path, indices: range) -> list[LayoutPart]:
    cuts = [tuple(indices[start : start + PART]) for start in range(0, len(indices), PART)]
    return [LayoutPart(folder / f"part{number}", cut) for number, cut in enumerate(cuts)]
