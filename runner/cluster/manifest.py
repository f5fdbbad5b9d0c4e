"""Manifests that start a cluster for one run: a RayJob of KubeRay, or a batch script of Slurm."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

RAY_VERSION = "2.60.0"
"""Version of Ray in the default image."""
_KEPT = 600
"""Time after which a finished RayJob is deleted [s]."""


@dataclass(frozen=True, kw_only=True)
class ClusterShape:
    """Number and size of the nodes of a cluster that is started for one run."""

    nodes: int
    """Number of nodes; for an elastic cluster, the smallest number."""
    cpus: int
    """Number of CPUs of each node."""
    memory_gb: int
    """Memory of each node [10⁹ bytes]."""
    gpus: int = 0
    """Number of GPUs of each node."""
    most_nodes: int = 0
    """Largest number of nodes of an elastic cluster; 0 for a fixed number."""

    @property
    def is_elastic(self) -> bool:
        """True if the number of nodes changes with the remaining work."""
        return self.most_nodes > self.nodes


def ray_job(
    words: Sequence[str], shape: ClusterShape, *, name: str, image: str, service_account: str = ""
) -> dict[str, Any]:
    """Return a RayJob of KubeRay (``ray.io/v1``): a head that runs no episodes, and equal nodes.

    Args:
        words: Arguments of ``nimbus run``, without ``--cluster``.
        shape: Shape of the nodes.
        name: Name of the job.
        image: Image with Nimbus and Ray.
        service_account: Kubernetes service account with write access to the store; empty for none.
    """
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": kubernetes_name(name)},
        "spec": {
            "entrypoint": shlex.join(["nimbus", "run", *words, *_bounds(shape), "--cluster", "auto"]),
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": _KEPT,
            "backoffLimit": 3,
            "rayClusterSpec": {
                "rayVersion": RAY_VERSION,
                "authOptions": {"mode": "token"},
                **({"enableInTreeAutoscaling": True} if shape.is_elastic else {}),
                "headGroupSpec": {
                    "rayStartParams": {"num-cpus": "0"},
                    "template": _pod("ray-head", image, cpus=2, memory_gb=8, gpus=0, account=service_account),
                },
                "workerGroupSpecs": [
                    {
                        "groupName": "nodes",
                        "replicas": shape.nodes,
                        "minReplicas": shape.nodes,
                        "maxReplicas": max(shape.nodes, shape.most_nodes),
                        "rayStartParams": {"num-cpus": str(shape.cpus)},
                        "template": _pod(
                            "ray-worker",
                            image,
                            cpus=shape.cpus,
                            memory_gb=shape.memory_gb,
                            gpus=shape.gpus,
                            account=service_account,
                        ),
                    }
                ],
            },
        },
    }


def slurm_script(words: Sequence[str], shape: ClusterShape, *, name: str) -> str:
    """Return a batch script for ``sbatch``. The first node starts Ray's head and the run, the others join it.

    Other users of a node can listen on any free port, and create any folder in ``/tmp``. The token is
    therefore one of the job, Ray's head binds a free port before other nodes get its address, and folders are private.

    Args:
        words: Arguments of ``nimbus run``, without ``--cluster``.
        shape: Shape of the nodes.
        name: Name of the job.
    """
    gpus = f"#SBATCH --gpus-per-node={shape.gpus}\n" if shape.gpus else ""
    # Ray's default port of its agents may be taken on a shared node; with 0, it chooses one.
    node = f"--num-cpus {shape.cpus} --dashboard-agent-listen-port 0"
    return f"""\
#!/bin/bash
#SBATCH --job-name={kubernetes_name(name)}
#SBATCH --nodes={shape.nodes}{f"-{shape.most_nodes}" if shape.is_elastic else ""}
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task={shape.cpus}
#SBATCH --mem={shape.memory_gb}G
{gpus}#SBATCH --signal=B:TERM@120
#SBATCH --requeue
set -euo pipefail
# A token of this job alone. It is passed on in the environment, which other users cannot read.
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -dc 0-9a-f)
# A new private folder, because other users can create /tmp/ray. Its path is short, because it becomes those of sockets.
RAY_TMPDIR=$(mktemp -d /tmp/nimbus-XXXXXXXX)
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_TMPDIR RAY_USAGE_STATS_ENABLED=0 RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=0
export PYTHONSAFEPATH=1 # Ray's processes would import modules of the folder of sbatch
ray= nodes=
finish() {{ # the other nodes end before the head, whose port is free for other users afterwards
    if [ -n "$nodes" ]; then
        scancel --signal=TERM "$SLURM_JOB_ID.0" || true # a signal to srun kills its tasks at once
        for _ in {{1..30}}; do kill -0 "$nodes" 2> /dev/null || break; sleep 1; done
        kill "$nodes" 2> /dev/null || true
    fi
    [ -z "$ray" ] || {{ kill "$ray"; wait "$ray"; }} || true
    rm -rf "$RAY_TMPDIR"
}}
trap finish EXIT
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# An address, because Ray does not look names up in /etc/hosts, where a node's own name may also mean loopback.
address=$(getent ahostsv4 "$head" | awk '$1 !~ /^127[.]/ {{print $1; exit}}' || true)
address=${{address:-$(hostname -I | awk '{{print $1}}')}}
# With port 0 the head binds a free port, and writes it into the private folder. Ray's other ports are not used.
ray start --head --block --node-ip-address "$address" --port 0 {node} \\
    --include-dashboard false --ray-client-server-port $((20000 + RANDOM % 10000)) &
ray=$!
tries=0
until [ -s "$RAY_TMPDIR/ray/ray_current_cluster" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ] || ! kill -0 "$ray" 2> /dev/null; then
        echo "the head of Ray did not start; see above" >&2; exit 1
    fi
    sleep 1
done
RAY_ADDRESS=$(cat "$RAY_TMPDIR/ray/ray_current_cluster")
export RAY_ADDRESS
others=$((SLURM_JOB_NUM_NODES - 1))
if [ "$others" -gt 0 ]; then
    srun --relative=1 --nodes="$others" --ntasks="$others" --ntasks-per-node=1 --cpus-per-task={shape.cpus} \\
        --export=ALL bash -c '
            mkdir -m 700 "$RAY_TMPDIR" || exit # Ray takes the path of the head, which another user may have seen
            trap "rm -rf $RAY_TMPDIR" EXIT
            trap : TERM # Ray gets it as well, and ends before the folder is removed
            ray start --block --address "$RAY_ADDRESS" {node}' &
    nodes=$!
fi
{shlex.join(["nimbus", "run", *words, "--cluster", "auto"])} &
run=$!
# Slurm's signal, two minutes before the end, reaches only this shell. The run gets it, and finishes its episodes.
trap 'is_signaled=1; kill -TERM "$run" || true' TERM
code=0; wait "$run" || code=$?
while [ -n "${{is_signaled:-}}" ]; do is_signaled=; code=0; wait "$run" || code=$?; done # a trap ends a wait
exit $code
"""


def _bounds(shape: ClusterShape) -> tuple[str, ...]:
    return ("--nodes", f"{shape.nodes}..{shape.most_nodes}") if shape.is_elastic else ()


def to_yaml(content: dict[str, Any]) -> str:
    """Encode plain values as YAML; the order of keys is kept."""
    return yaml.safe_dump(content, sort_keys=False, width=120)


def kubernetes_name(text: str) -> str:
    """Return a name that Kubernetes and Slurm accept: lower case, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].strip("-") or "nimbus"


def _pod(name: str, image: str, *, cpus: int, memory_gb: int, gpus: int, account: str) -> dict[str, Any]:
    size: dict[str, Any] = {"cpu": str(cpus), "memory": f"{memory_gb}G"}
    if gpus:
        size["nvidia.com/gpu"] = str(gpus)
    spec: dict[str, Any] = {
        "containers": [{"name": name, "image": image, "resources": {"requests": dict(size), "limits": dict(size)}}]
    }
    return {"spec": ({"serviceAccountName": account} if account else {}) | spec}
