"""``nimbus export DIR --to FORMAT --out OUT``: writes the stored episodes in a format that training code reads."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from nimbus.datagen.datasets.export.formats import FORMATS
from nimbus.runner.commands.options import (
    ACTIONS,
    ROTATIONS,
    STATES,
    AsJson,
    DatasetFolder,
    EpisodeSize,
    NewFolder,
    ShardSize,
    StoredTask,
    one_of,
)
from nimbus.runner.system.output import write_json


def command(
    folder: DatasetFolder,
    *,
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", parser=one_of(tuple(FORMATS)), help=", ".join(FORMATS))
    ] = next(iter(FORMATS)),
    out: NewFolder,
    episode_size: EpisodeSize = 1000,
    shard_size: ShardSize = 10**9,
    actions: Annotated[
        str, typer.Option("--actions", metavar="MODE", parser=one_of(ACTIONS), help=", ".join(ACTIONS))
    ] = ACTIONS[0],
    rotation: Annotated[
        str,
        typer.Option(
            "--rotation", metavar="FORM", parser=one_of(ROTATIONS), help=f"rotation of tools: {', '.join(ROTATIONS)}"
        ),
    ] = ROTATIONS[0],
    state: Annotated[
        str,
        typer.Option(
            "--state",
            metavar="FORM",
            parser=one_of(STATES),
            help="measured: positions of all joints; commanded: the gripper's last command in place of its joints, as "
            "in an action",
        ),
    ] = STATES[0],
    environment_state: Annotated[
        bool, typer.Option("--environment-state", help="include the scene's state: poses, sizes, kinds, joints")
    ] = False,
    done: Annotated[bool, typer.Option("--done", help="include next.done and next.success")] = False,
    depth: Annotated[bool, typer.Option("--depth", help="include depth, in lossless videos beside LeRobot's")] = False,
    masks: Annotated[
        bool,
        typer.Option("--masks", help="include masks of instances and classes, in lossless videos beside LeRobot's"),
    ] = False,
    annotations: Annotated[
        bool,
        typer.Option("--annotations", help="include flow (lossless videos), and keypoints and tool poses (tables)"),
    ] = False,
    keep_failures: Annotated[
        bool,
        typer.Option(
            "--keep-failures", help="include the failed attempts that the run kept, labeled, after the episodes"
        ),
    ] = False,
    restricted_assets: Annotated[
        bool,
        typer.Option(
            "--restricted-assets", help="include episodes with objects whose licenses restrict redistribution"
        ),
    ] = False,
    task: StoredTask = None,
    as_json: AsJson = False,
) -> int:
    """Write the export and print a summary."""
    from nimbus.datagen.datasets.export.export import export
    from nimbus.datagen.datasets.export.shards import Options
    from nimbus.datagen.policies.signal_view import SignalView
    from nimbus.datagen.tasks.own_tasks import name_task
    from nimbus.runner.monitor.output_summary import print_exported, report_pending

    if task:
        name_task(task)
    begin = time.monotonic()
    options = Options(episode_size=episode_size, shard_bytes=shard_size)
    view = SignalView(actions=actions, rotation=rotation, state=state, environment_state=environment_state, done=done)
    asked = {"depth": depth, "masks": masks, "annotations": annotations}
    side = tuple(name for name, is_asked in asked.items() if is_asked)
    made = export(
        folder,
        out,
        to=to,
        options=options,
        keep_failures=keep_failures,
        with_restricted=restricted_assets,
        view=view,
        side=side,
        tell=report_pending,
    )
    if as_json:
        write_json(asdict(made) | {"out": str(made.out)})
    else:
        print_exported(made, time.monotonic() - begin)
    return 0
