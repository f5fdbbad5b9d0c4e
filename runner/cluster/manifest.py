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


def slurm_script(words: Sequence[str], shape: ClusterShape, *, name: str, port: int = 6379) -> str:
    """Return a batch script for ``sbatch``. Each node starts Ray, and the first one also starts the run.

    Args:
        words: Arguments of ``nimbus run``, without ``--cluster``.
        shape: Shape of the nodes.
        name: Name of the job.
        port: Port on which Ray's head listens.
    """
    gpus = f"#SBATCH --gpus-per-node={shape.gpus}\n" if shape.gpus else ""
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
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
(umask 077; mkdir -p ~/.ray; [ -s ~/.ray/auth_token ] || ray get-auth-token --generate > /dev/null)
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# An address, because Ray does not look names up in /etc/hosts, where a node's own name may also mean loopback.
address=$(getent ahostsv4 "$head" | awk '$1 !~ /^127[.]/ {{print $1; exit}}' || true)
address=${{address:-$(hostname -I | awk '{{print $1}}')}}
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=600
# Slurm's signal, two minutes before the end, reaches only this shell. The run gets it, and finishes its episodes.
run=$(mktemp)
trap 'is_signaled=1; kill -TERM "$(cat "$run")" || true' TERM
# On each node a private folder: all users may write in those that Ray makes, with its sockets and the code of jobs.
start='RAY_TMPDIR=$(mktemp -d -p /tmp) && export RAY_TMPDIR && exec ray symmetric-run --temp-dir "$RAY_TMPDIR/ray" "$@"'
srun bash -c "$start" ray \\
    --address "$address:{port}" --min-nodes "$SLURM_JOB_NUM_NODES" --num-cpus {shape.cpus} -- \\
    bash -c 'echo $$ > "$0"; exec "$@"' "$run" \\
    {shlex.join(["nimbus", "run", *words, "--cluster", "auto"])} &
code=0; wait $! || code=$?
while [ -n "${{is_signaled:-}}" ]; do is_signaled=; code=0; wait $! || code=$?; done # a trap ends a wait
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
