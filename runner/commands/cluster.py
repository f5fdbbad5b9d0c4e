"""``nimbus cluster manifest|slurm``: prints a file with which Kubernetes or Slurm starts a cluster for one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.runner.commands.options import CountRange, Seed, count_range, one_of, whole
from nimbus.runner.system.output import write_out

KINDS = ("manifest", "slurm")


def command(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            parser=one_of(KINDS),
            help="manifest: a RayJob for KubeRay; slurm: a script for sbatch",
        ),
    ],
    *,
    task: Annotated[str, typer.Option("--task", metavar="NAME", parser=str, help="a task's name, or its file's path")],
    out: Annotated[
        str,
        typer.Option("--out", metavar="PLACE", parser=str, help="address in a store, or a folder shared by all nodes"),
    ],
    episodes: Annotated[
        int, typer.Option("--episodes", metavar="N", parser=whole(1, 10**7), help="number of episodes")
    ] = 10,
    seed: Seed = 0,
    nodes: Annotated[
        CountRange | None,
        typer.Option(
            "--nodes", metavar="M..N", parser=count_range, help="number of nodes, or smallest and largest number (4)"
        ),
    ] = None,
    cpus: Annotated[
        int, typer.Option("--cpus", metavar="N", parser=whole(1, 1024), help="number of CPUs per node (16)")
    ] = 16,
    memory: Annotated[
        int, typer.Option("--memory", metavar="GB", parser=whole(1, 100_000), help="memory per node [GB] (64)")
    ] = 64,
    gpus: Annotated[
        int, typer.Option("--gpus", metavar="N", parser=whole(0, 64), help="number of GPUs per node (0)")
    ] = 0,
    image: Annotated[
        str, typer.Option("--image", metavar="NAME", parser=str, help="manifest: image with Nimbus and Ray")
    ] = "",
    service_account: Annotated[
        str,
        typer.Option(
            "--service-account", metavar="NAME", parser=str, help="account with a role that may write to the store"
        ),
    ] = "",
) -> int:
    """Print the file."""
    from nimbus.runner.cluster.manifest import ClusterShape, ray_job, slurm_script, to_yaml

    words = ["--task", task, "--episodes", str(episodes), "--seed", str(seed), "--out", out]
    words += ["--device", "cuda"] if gpus else []
    count = nodes or CountRange(4, 4)
    shape = ClusterShape(nodes=count.least, most_nodes=count.most, cpus=cpus, memory_gb=memory, gpus=gpus)
    if kind == "slurm":
        write_out(slurm_script(words, shape, name=f"nimbus-{Path(task).stem}"))
        return 0
    if not image:
        instead = "give --image NAME of an image with Nimbus and its extra 'cluster'; docs/cluster.md has a Dockerfile"
        raise InputError("a manifest needs an image", where="--image", instead=instead)
    write_out(
        to_yaml(ray_job(words, shape, name=f"nimbus-{Path(task).stem}", image=image, service_account=service_account))
    )
    return 0
