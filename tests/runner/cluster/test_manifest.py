"""Files that start a cluster elsewhere: a RayJob valid for KubeRay's schema, and a valid shell script."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from nimbus.runner.cli import main
from nimbus.runner.cluster.manifest import kubernetes_name

POD: dict[str, Any] = {
    "spec": {"serviceAccountName": str, "containers": [{"name": str, "image": str, "resources": dict}]}
}
SCHEMA: dict[str, Any] = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str},
    "spec": {
        "entrypoint": str,
        "shutdownAfterJobFinishes": bool,
        "ttlSecondsAfterFinished": int,
        "backoffLimit": int,
        "rayClusterSpec": {
            "enableInTreeAutoscaling": bool,
            "rayVersion": str,
            "authOptions": {"mode": str},
            "headGroupSpec": {"rayStartParams": dict, "template": POD},
            "workerGroupSpecs": [
                {
                    "groupName": str,
                    "replicas": int,
                    "minReplicas": int,
                    "maxReplicas": int,
                    "rayStartParams": dict,
                    "template": POD,
                }
            ],
        },
    },
}
"""Fields of ``ray.io/v1`` RayJob that the manifest uses, with their types, from KubeRay's CRD of 2026-08."""


def check(value: Any, schema: Any) -> None:
    """Check types, and that no field is unknown."""
    if isinstance(schema, dict):
        assert value.keys() <= schema.keys()
        for name, inner in value.items():
            check(inner, schema[name])
    elif isinstance(schema, list):
        for inner in value:
            check(inner, schema[0])
    else:
        assert type(value) is schema


def test_manifest_is_a_ray_job(capsys: pytest.CaptureFixture[str]):
    words = ["--task", "sort_trash", "--episodes", "1000", "--out", "s3://b/x y", "--nodes", "3", "--gpus", "1"]
    assert main(["cluster", "manifest", *words, "--image", "registry/nimbus:1", "--service-account", "writer"]) == 0
    job = yaml.safe_load(capsys.readouterr().out)
    check(job, SCHEMA)
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert "--out 's3://b/x y' --device cuda --cluster auto" in job["spec"]["entrypoint"]
    nodes = job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    assert nodes["minReplicas"] == nodes["maxReplicas"] == 3
    assert all(type(text) is str for text in nodes["rayStartParams"].values())


def test_nodes_of_a_manifest_follow_the_demand(capsys: pytest.CaptureFixture[str]):
    words = ["--task", "sort_trash", "--out", "s3://b/x", "--nodes", "2..40"]
    assert main(["cluster", "manifest", *words, "--image", "registry/nimbus:1"]) == 0
    job = yaml.safe_load(capsys.readouterr().out)
    check(job, SCHEMA)
    cluster = job["spec"]["rayClusterSpec"]
    nodes = cluster["workerGroupSpecs"][0]
    assert cluster["enableInTreeAutoscaling"] and (nodes["minReplicas"], nodes["maxReplicas"]) == (2, 40)
    assert "--nodes 2..40 --cluster auto" in job["spec"]["entrypoint"]
    assert main(["cluster", "slurm", *words]) == 0
    assert "#SBATCH --nodes=2-40\n" in capsys.readouterr().out


def test_script_of_slurm_is_read_by_a_shell(capsys: pytest.CaptureFixture[str]):
    assert main(["cluster", "slurm", "--task", "/tasks/a b.yaml", "--out", "s3://b/x", "--nodes", "5"]) == 0
    script = capsys.readouterr().out
    assert "#SBATCH --nodes=5\n" in script and "nimbus run --task '/tasks/a b.yaml'" in script
    assert "#SBATCH --job-name=nimbus-a-b\n" in script
    assert "get-auth-token --generate > /dev/null" in script  # it prints the token, into the job's log
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_signal_of_slurm_reaches_only_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The shell of the job forwards the signal before the end, and ends with the exit code of the run."""
    assert main(["cluster", "slurm", "--task", "sort_trash", "--out", "s3://b/x", "--nodes", "2..4"]) == 0
    script = capsys.readouterr().out
    assert "#SBATCH --signal=B:TERM@120\n" in script
    programs = {
        "scontrol": "echo localhost",
        "hostname": "echo 10.0.0.7 10.1.0.7",  # getent finds a loopback address
        "srun": """echo "$@" > words; trap 'touch step' TERM; "$@" & wait $!; wait $!""",
        "ray": '[ "$1" = get-auth-token ] && exit; echo "$RAY_TMPDIR" "$@" > started; '
        'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
        "nimbus": "trap 'kill $!; exit 7' TERM; sleep 60 & touch up; wait",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    known = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    known |= {"SLURM_JOB_NODELIST": "node[1-3]", "SLURM_JOB_NUM_NODES": "3"}
    with subprocess.Popen(["bash", "-c", script], cwd=tmp_path, env=known) as job:
        while not (tmp_path / "up").exists():
            assert job.poll() is None
            time.sleep(0.01)
        job.terminate()
    assert job.returncode == 7 and not (tmp_path / "step").exists()
    assert "--address 10.0.0.7:6379 --min-nodes 3" in (tmp_path / "words").read_text()
    place, *words = (tmp_path / "started").read_text().split()
    assert words[:3] == ["symmetric-run", "--temp-dir", f"{place}/ray"]
    assert stat.S_IMODE(os.stat(place).st_mode) == 0o700, "Ray opens its folders to all users of the machine"
    os.rmdir(place)


def test_manifest_needs_an_image(capsys: pytest.CaptureFixture[str]):
    assert main(["cluster", "manifest", "--task", "sort_trash", "--out", "s3://b/x"]) == 2
    assert "--image" in capsys.readouterr().err


def test_names_are_those_of_kubernetes():
    assert kubernetes_name("nimbus-Sort_Trash.yaml") == "nimbus-sort-trash-yaml"
    assert kubernetes_name("___") == "nimbus"
