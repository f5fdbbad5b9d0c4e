"""``nimbus convert SRC --to lerobot --out OUT``: writes a LeRobot dataset in another version, without reencoding."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nimbus.runner.commands.options import LEROBOT_FORMATS, AsJson, DatasetFolder, EpisodeSize, ShardSize, one_of
from nimbus.runner.commands.parser import new_path
from nimbus.runner.system.output import write_json


def command(
    folder: DatasetFolder,
    *,
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", parser=one_of(LEROBOT_FORMATS), help=", ".join(LEROBOT_FORMATS))
    ] = LEROBOT_FORMATS[0],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="OUT", parser=new_path, help="folder of the new dataset (DIR_FORMAT beside DIR)"),
    ] = None,
    episode_size: EpisodeSize = 1000,
    shard_size: ShardSize = 10**9,
    as_json: AsJson = False,
) -> int:
    """Convert and print a summary of the new dataset."""
    from nimbus.datagen.datasets.convert.convert import convert
    from nimbus.datagen.datasets.export.shards import Options
    from nimbus.runner.monitor.output_summary import print_converted, report_pending

    begin = time.monotonic()
    options = Options(episode_size=episode_size, shard_bytes=shard_size)
    folder = folder.absolute()
    made = convert(folder, out or folder.with_name(f"{folder.name}_{to}"), to=to, options=options, tell=report_pending)
    if as_json:
        write_json(asdict(made) | {"out": str(made.out)})
    else:
        print_converted(made, time.monotonic() - begin)
    return 0
