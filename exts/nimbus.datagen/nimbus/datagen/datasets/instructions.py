"""Instructions of stored navigation episodes: check of their claims, and rewording by a language model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.observation import Labels, Observation
from nimbus.datagen.language_model.client import BudgetSpent, LanguageModel, ModelUnavailable
from nimbus.datagen.navigate.instruct.claims import StoredInstruction, noun_of, room_noun
from nimbus.datagen.navigate.instruct.compose import with_instruction
from nimbus.datagen.navigate.instruct.proof import DriveRecord, find_false_claims
from nimbus.datagen.navigate.instruct.reworded import reword
from nimbus.datagen.stages import Rendered, Request, Scene
from nimbus.datagen.store.episode_file.read import EpisodeFile

_CHUNK = 16
"""Number of rows read at a time."""


@dataclass(frozen=True, kw_only=True)
class InstructionCheck:
    """Result of the check of one episode's instruction."""

    claims: int
    """Number of checked claims; 0 for an instruction without steps. Claims about objects need stored labels."""
    problems: tuple[str, ...] = ()
    """False claims, one line each."""


@dataclass
class RewordCount:
    """Number of reworded episodes of a dataset."""

    reworded: int = 0
    """Number of episodes with new wording."""
    kept: int = 0
    """Number of episodes that keep their wording."""
    reason: str = ""
    """First reason why an episode keeps its wording."""


def check_instruction(episode: EpisodeFile) -> InstructionCheck:
    """Check the claims of a stored episode's instruction.

    Raises:
        InputError: The file is damaged.
    """
    record = read_record(episode)
    if record is None:
        return InstructionCheck(claims=0)
    claims = sum(record.can_check(step.claim) for step in record.stored.steps)
    return InstructionCheck(claims=claims, problems=find_false_claims(record))


def read_record(episode: EpisodeFile) -> DriveRecord | None:
    """Read the data with which the claims of an instruction are checked; None if the instruction has no steps.

    Raises:
        InputError: The file is damaged.
    """
    stored = StoredInstruction.from_drawn(episode.layout().visual.drawn, where=str(episode.path))
    if stored is None:
        return None
    labels, count = episode.labels, episode.step_count
    rooms = [""] * count
    for segment in episode.segments:
        rooms[segment.start : segment.stop] = [segment.target] * (segment.stop - segment.start)
    w, x, y, z = np.moveaxis(episode.array("observations/body_wxyz")[:, 0].astype(float), -1, 0)
    classes = _classes(labels) if labels else ()
    return DriveRecord(
        instruction=episode.instruction,
        stored=stored,
        positions=episode.array("observations/body_positions")[:, 0].astype(float),
        yaws=np.unwrap(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))),
        rooms=tuple(rooms),
        classes=classes,
        boxes=np.asarray(labels.boxes_3d, dtype=float) if labels else np.zeros((0, 2, 3)),
        shares=_shares(episode, len(classes)),
    )


def _classes(labels: Labels) -> tuple[str, ...]:
    return tuple(labels.semantic_names[number] for number in labels.instance_semantics.tolist())


def _shares(episode: EpisodeFile, count: int) -> FloatArray | None:
    """Return the largest fraction (T, N) of a camera's image that each object fills; None without stored masks."""
    shown = [camera for camera in episode.cameras if "instance" in episode.modalities(camera)]
    if not shown:
        return None
    found = np.zeros((episode.step_count, count))
    for camera in shown:
        for start in range(0, episode.step_count, _CHUNK):
            masks = episode.rows(f"observations/instance/{camera}", slice(start, start + _CHUNK))
            for row, mask in enumerate(masks, start):
                counts = np.bincount(mask.ravel(), minlength=count)[:count]
                found[row] = np.maximum(found[row], counts / mask.size)
    return found


def reworded_episodes(
    paths: list[Path], model: LanguageModel, counts: RewordCount, settings: dict[str, str]
) -> Iterator[Rendered]:
    """Yield stored episodes for a writer, with a model's wording if its claims hold.

    Args:
        paths: Paths of the episode files.
        model: Model that rewords the instructions.
        counts: Counts, updated with each episode.
        settings: Settings that are added to the provenance of each episode.

    Raises:
        InputError: An episode is damaged, or the server cannot be used.
    """
    for path in paths:
        with EpisodeFile(path) as episode:
            before = episode.layout()
            layout = before
            record = read_record(episode)
            if record is not None:
                nouns = {noun_of(one) for one in record.classes} | {room_noun(room) for room in record.rooms}
                stored, why = _asked(record.stored, model, nouns - {""})
                text = " ".join(step.text for step in stored.steps)
                if not why:
                    proved = replace(record, stored=stored, instruction=text)
                    why = next(iter(find_false_claims(proved)), "")
                if why:
                    counts.kept += 1
                    counts.reason = counts.reason or why
                else:
                    layout = with_instruction(before, stored, text)
                    counts.reworded += 1
            else:
                counts.kept += 1
                counts.reason = counts.reason or "the instruction has no steps"
            key = layout.key if layout.key.plan else replace(layout.key, plan=before.key.plan_id)
            provenance = replace(
                episode.provenance, settings=episode.provenance.settings | settings | {"source": before.key.id}
            )
            yield Rendered(
                scene=Scene(request=Request(index=key.index), assets=None, provenance=provenance),
                layout=replace(layout, key=key),
                trajectory=episode.trajectory(),
                labels=episode.labels,
                observations=_observations(episode),
            )


def _asked(stored: StoredInstruction, model: LanguageModel, nouns: set[str]) -> tuple[StoredInstruction, str]:
    """Return the model's wording and an empty text, or the old wording and the reason why there is no new one."""
    try:
        return reword(stored, model, nouns)
    except (BudgetSpent, ModelUnavailable) as error:
        return stored, error.what


def _observations(episode: EpisodeFile) -> Iterator[Observation]:
    for start in range(0, episode.step_count if episode.cameras else 0, _CHUNK):
        stop = min(start + _CHUNK, episode.step_count)
        yield Observation(start=start, cameras={name: episode.frames(name, start, stop) for name in episode.cameras})
