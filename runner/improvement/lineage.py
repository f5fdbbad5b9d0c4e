"""Ancestors of an episode, as lines: the rollout that it corrects, the policies, the demonstrations, the proposal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import INFO_NAME
from nimbus.runner.improvement.learner import RECORD, PolicyRecord, read_record
from nimbus.runner.improvement.loop import NAME, Improvement

_INDENT = "  "
_KIND = {"": "demonstration", "demonstration": "demonstration", "rollout": "rollout", "correction": "correction"}


def lineage(folder: Path, episode_id: str) -> Iterator[str]:
    """Yield one line for each ancestor of an episode, up to the demonstrations.

    Args:
        folder: Folder of an improvement, or a dataset.
        episode_id: Id in the name of its file. If a failed rollout has a correction with the same id, the lines
            describe the correction, and name the rollout.

    Raises:
        InputError: There is no such episode.
    """
    loop = Improvement.read(folder) if (folder / NAME).is_file() else None
    path = _find(folder, episode_id)
    with EpisodeFile(path) as episode:
        known, outcome = episode.provenance.ancestors, episode.outcome
        task = f"task {episode.layout().key.task}, content {episode.provenance.task_hash[:16]}"
    role = known.get("role", "")
    ending = "" if outcome.success else f", failed: {outcome.reason.replace('_', ' ')}"
    where = f" of round {known['round']}" if known.get("round", "0") != "0" else ""
    yield f"{episode_id}: {_KIND.get(role, role)}{where}{ending}"
    if "rollout" in known:
        hashed, step = known.get("rollout_hash", "")[:16], known.get("step", "?")
        yield f"{_INDENT}takes over at step {step} of rollout {known['rollout']} ({hashed}), which failed"
    if policy := known.get("policy"):
        yield f"{_INDENT}acted: policy {policy}"
        if loop is not None:
            yield from (f"{_INDENT * 2}{line}" for line in _policy_lines(loop, policy))
    if "demonstration" in known:
        yield f"{_INDENT}goes back to demonstrations {known['demonstration']}"
    if "proposal" in known:
        yield f"{_INDENT}proposal {known['proposal']}"
    yield f"{_INDENT}{task}"


def _find(folder: Path, episode_id: str) -> Path:
    """Return the file of an episode, preferring stored episodes to failures and corrections to what they correct."""
    if not (folder / NAME).is_file() and not (folder / INFO_NAME).is_file():
        raise InputError(
            "neither an improvement nor a dataset",
            where=str(folder),
            instead="give the folder of an improvement or of a dataset",
        )
    files = sorted(path for path in folder.rglob("*.hdf5") if path.parent.name in ("episodes", "failures"))
    ids = {path: path.stem if path.parent.name == "episodes" else path.stem.rpartition(".a")[0] for path in files}
    found = [path for path in files if ids[path] == episode_id]
    if not found:
        raise InputError(
            f"no episode '{episode_id}'", where=str(folder), instead=suggest(episode_id, set(ids.values()))
        )
    return min(found, key=lambda path: (path.parent.name != "episodes", path))


def _policy_lines(loop: Improvement, policy: str) -> Iterator[str]:
    """Yield a line about a published policy, and about each version that it was trained from."""
    records = [read_record(loop, version) for version in loop.rounds if (loop.policy(version) / RECORD).is_file()]
    by_hash: dict[str, PolicyRecord] = {record.policy: record for record in records}
    while record := by_hash.pop(policy, None):  # foreign records may name each other in a circle
        learned = (
            f"{count} {name} of round {number}"
            for number, sources in enumerate(record.rounds)
            for name, count in sources.items()
        )
        after = f", after {record.parent}" if record.parent else ""
        yield f"version {record.version} ({record.policy}): {record.objective} from {'; '.join(learned)}{after}"
        policy = record.parent
