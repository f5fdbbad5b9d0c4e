"""Files that start a cluster elsewhere: a RayJob valid for KubeRay's schema, and a valid shell script."""

from __future__ import annotations

import os
import re
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
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


PROGRAMS = {
    "scontrol": "echo localhost",
    "hostname": "echo 10.0.0.7 10.1.0.7",  # getent finds a loopback address
    "srun": """echo "$@" > step; while [ "$1" != bash ]; do shift; done
        export RAY_TMPDIR=$PWD/other; echo $$ > step.pid; exec "$@" """,
    "scancel": """echo "$@" > cancelled; kill -TERM $(cat step.pid node.pid)""",
    "ray": """echo "$@" >> calls; echo "$RAY_AUTH_MODE $RAY_AUTH_TOKEN" >> tokens
        echo "$PYTHONSAFEPATH" >> safe
        trap 'kill $!; echo "$2" >> ended; exit' TERM
        if [ "$2" = --head ]; then
            [ ! -e no-head ] || exit 1
            stat -c '%a %n' "$RAY_TMPDIR" > folder; mkdir "$RAY_TMPDIR/ray"
            [ ! -e step ] || touch too-early
            echo 10.0.0.7:43210 > "$RAY_TMPDIR/ray/ray_current_cluster"
        else
            stat -c %a "$RAY_TMPDIR" > other-mode; echo $$ > node.pid
        fi
        sleep 60 & wait""",
}
"""Programs of Slurm and Ray, which record their arguments and what they are given."""


def job_of_slurm(folder: Path, nimbus: str, capsys: pytest.CaptureFixture[str], **more: str) -> subprocess.Popen[str]:
    """Start the script with stand-ins for all programs, on three nodes, of which one task stands for all others."""
    assert main(["cluster", "slurm", "--task", "sort_trash", "--out", "s3://b/x", "--nodes", "2..4"]) == 0
    script = capsys.readouterr().out
    assert "#SBATCH --signal=B:TERM@120\n" in script
    for name, text in (PROGRAMS | {"nimbus": nimbus}).items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    known = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "TMPDIR": str(folder), "SLURM_JOB_ID": "17"}
    known |= {"SLURM_JOB_NODELIST": "node[1-3]", "SLURM_JOB_NUM_NODES": "3"} | more
    return subprocess.Popen(["bash", "-c", script], cwd=folder, env=known, stderr=subprocess.PIPE, text=True)


WAIT = "for _ in {1..1000}; do [ ! -e node.pid ] || break; sleep 0.01; done"
"""Lines of the run that wait until another node has joined."""


def test_signal_of_slurm_reaches_only_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The shell of the job forwards the signal before the end, and ends with the exit code of the run."""
    with job_of_slurm(
        tmp_path, f"{WAIT}; trap 'cp ended early; kill $!; exit 7' TERM; sleep 60 & touch up; wait", capsys
    ) as job:
        while not (tmp_path / "up").exists():
            assert job.poll() is None
            time.sleep(0.01)
        job.terminate()
    assert job.returncode == 7 and not (tmp_path / "early").exists()  # Ray ends after the run
    assert (tmp_path / "ended").read_text().split() == ["--block", "--head"]  # the other nodes, then the head
    assert (tmp_path / "cancelled").read_text() == "--signal=TERM 17.0\n"
    assert (tmp_path / "step").read_text().startswith("--relative=1 --nodes=2 --ntasks=2 --ntasks-per-node=1 ")


def test_job_of_slurm_sends_other_users_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Nodes may have other users, who listen on Ray's ports and have created ``/tmp/ray``.

    The token is that of no other cluster and on no command line, the head binds a free port before any node is told
    one, and Ray's folders are private.
    """
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("of-all-clusters")
    run = f'{WAIT}; echo "$@" >> calls; echo "$RAY_AUTH_MODE $RAY_AUTH_TOKEN" >> tokens; echo $RAY_ADDRESS > head'
    seen: set[str] = set()
    for _ in range(2):  # as after a requeue
        with job_of_slurm(tmp_path, run, capsys, RAY_ADDRESS="10.9.9.9:6379", RAY_AUTH_TOKEN="inherited") as job:
            pass
        assert job.returncode == 0
        given = (tmp_path / "tokens").read_text().splitlines()
        assert len(given) == 3 and len(set(given)) == 1  # head, node and run
        mode, token = given[0].split()
        assert mode == "token" and re.fullmatch("[0-9a-f]{64}", token) and token not in seen
        seen.add(token)
        calls = (tmp_path / "calls").read_text()
        head, node, _ = calls.splitlines()
        assert head.startswith("start --head --block --node-ip-address 10.0.0.7 --port 0 ")
        assert node.startswith("start --block --address 10.0.0.7:43210 ") and not (tmp_path / "too-early").exists()
        assert (tmp_path / "head").read_text() == "10.0.0.7:43210\n"
        assert token not in calls + (tmp_path / "step").read_text() and "6379" not in calls
        assert set((tmp_path / "safe").read_text().splitlines()) == {"1"}
        rights, place = (tmp_path / "folder").read_text().split()
        assert rights == "700" and (tmp_path / "other-mode").read_text() == "700\n"
        assert not Path(place).exists() and not (tmp_path / "other").exists()  # removed at the end
        for name in ("tokens", "calls", "step", "node.pid"):
            (tmp_path / name).unlink()


def test_node_whose_folder_exists_starts_no_ray(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Another user can see the path on the first node, and create it on another one first."""
    (tmp_path / "other").mkdir()
    step = "for _ in {1..500}; do [ -e step.pid ] && ! kill -0 $(cat step.pid) && break; sleep 0.01; done"
    with job_of_slurm(tmp_path, step, capsys) as job:
        assert job.stderr and "other" in job.stderr.read()
    assert (tmp_path / "calls").read_text().count("start") == 1 and not (tmp_path / "node.pid").exists()
    assert job.returncode == 0 and (tmp_path / "other").exists()


def test_job_of_one_node_starts_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with job_of_slurm(tmp_path, "exit 3", capsys, SLURM_JOB_NUM_NODES="1") as job:
        pass
    assert job.returncode == 3 and not (tmp_path / "step").exists() and not (tmp_path / "cancelled").exists()
    assert (tmp_path / "ended").read_text() == "--head\n"


def test_job_of_slurm_ends_when_its_head_does_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "no-head").touch()
    with job_of_slurm(tmp_path, "touch ran", capsys) as job:
        assert job.stderr and "the head of Ray did not start" in job.stderr.read()
    assert job.returncode == 1 and not (tmp_path / "step").exists() and not (tmp_path / "ran").exists()


def test_manifest_needs_an_image(capsys: pytest.CaptureFixture[str]):
    assert main(["cluster", "manifest", "--task", "sort_trash", "--out", "s3://b/x"]) == 2
    assert "--image" in capsys.readouterr().err


def test_names_are_those_of_kubernetes():
    assert kubernetes_name("nimbus-Sort_Trash.yaml") == "nimbus-sort-trash-yaml"
    assert kubernetes_name("___") == "nimbus"
