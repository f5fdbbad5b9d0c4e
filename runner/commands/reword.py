"""``nimbus reword DIR --model URL --out OUT``: rewrites step-by-step instructions with a language model."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.runner.commands.options import (
    AsJson,
    Budget,
    DatasetFolder,
    ModelName,
    NewFolder,
    Replay,
    open_model,
)
from nimbus.runner.system.output import shown_path, write_json, write_out

if TYPE_CHECKING:
    from nimbus.datagen.store.episode_file.jobs import Images


def command(
    folder: DatasetFolder,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", parser=str, help="ids of the episodes (all)")] = None,
    *,
    out: NewFolder,
    model: Annotated[
        str, typer.Option("--model", metavar="URL", parser=str, help="address of an OpenAI-compatible server")
    ] = "",
    model_name: ModelName = "",
    budget: Budget = 1_000_000,
    replay: Replay = None,
    as_json: AsJson = False,
) -> int:
    """Write episodes with new wordings into a new dataset; a wording that cannot be proved is not used."""
    from nimbus.datagen.datasets.instructions import RewordCount, reworded_episodes
    from nimbus.datagen.store.dataset import Dataset
    from nimbus.datagen.store.info import read_single_task_info
    from nimbus.datagen.store.writer import Hdf5Writer
    from nimbus.runner.checks.replay import episode_paths
    from nimbus.runner.report import write_report

    if not model and replay is None:
        instead = "give --model URL, or --replay DIR of an earlier run"
        raise InputError("no model is given", where="nimbus reword", instead=instead)
    paths = episode_paths(folder, ids or [])
    if out.resolve() == folder.resolve():
        raise InputError("the folder is the source dataset", where=f"--out {out}", instead="choose another folder")
    source = read_single_task_info(folder)
    images = _images(paths[0]) if paths else "lossless"
    asked = open_model(model, model_name, budget, replay, out)
    # The model's name is found before anything is written: otherwise a failed start would leave a folder that refuses
    # any other model.
    asked.find_name()
    counts = RewordCount()
    wording = hashlib.sha256(f"{source.task_hash} {source.seed} {model_name}".encode()).hexdigest()[:16]
    with Dataset.create_or_open(
        out,
        task=source.task,
        task_hash=source.task_hash,
        seed=source.seed,
        robot=source.robot,
        inputs=source.inputs | {"wording": wording},
        credits=source.credits,
        meaning=source.meanings.get(source.task),
    ) as dataset:
        already = {attempt.episode_id for attempt in dataset.ledger.stored()}
        left = [path for path in paths if path.stem not in already]
        writer = Hdf5Writer(dataset, images=images, synchronous=True)
        try:
            for stored in writer(reworded_episodes(left, asked, counts, {"wording": wording})):
                if not as_json:
                    write_out(f"{stored.episode_id}: {stored.step_count} steps, {stored.byte_count / 1e6:.1f} MB\n")
        finally:
            writer.close()
    write_report(out)
    if as_json:
        write_json(asdict(counts) | {"already": len(paths) - len(left), "tokens": asked.spent, "out": str(out)})
        return 0
    write_out(f"reworded   {counts.reworded} of {len(left)}; {counts.kept} keep their words\n")
    if counts.reason:
        write_out(f"reason     {counts.reason[:200]}\n")
    write_out(f"tokens     {asked.spent}\ndataset: {shown_path(out)}\n")
    return 0


def _images(path: Path) -> Images:
    """Return how a dataset stores its images.

    Raises:
        InputError: It stores video only, and encoding the images again would lose quality.
    """
    from nimbus.datagen.store.episode_file.read import EpisodeFile

    with EpisodeFile(path) as episode:
        if not episode.videos:
            return "lossless"
        if episode.members("observations/images"):
            return "both"
    what = "its images are stored as video only, and encoding them again would lose quality"
    raise InputError(what, where=str(path), instead="run it with --images lossless or both")
