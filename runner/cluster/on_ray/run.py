"""Run of a job on a Ray cluster, in a child process, because Ray kills its drivers when its head is lost."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.files.installation import add_extra
from nimbus.datagen.files.owned_folder import make_owned
from nimbus.datagen.version import nimbus_version
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.machine import platform_name
from nimbus.runner.cluster.on_ray.reach import check_reachable, read_token, warn_of_plain_token
from nimbus.runner.cluster.on_ray.request import RayLine, RayOrder
from nimbus.runner.monitor.dashboard import StatusDashboard
from nimbus.runner.monitor.status import FILE_NAME as STATUS_NAME
from nimbus.runner.system.child_module import module_command, module_environment
from nimbus.runner.system.output import write_error
from nimbus.runner.system.processes import Interruption

_FAREWELL = 10.0
"""Time limit for the child program to exit after its last line [s]."""


def check_ray(address: ClusterAddress) -> None:
    """Check that Ray is installed, and that the head of the cluster answers.

    Raises:
        InputError: Ray is not installed, no head answers, or a token is missing.
    """
    if address.kind != "http" and importlib.util.find_spec("ray") is None:
        raise InputError("Ray is not installed", where=f"--cluster {address}", instead=add_extra("cluster"))
    check_reachable(address)
    warn_of_plain_token(address)


def run_on_ray(job: ClusterJob, address: ClusterAddress, *, slots: int = 0) -> HeadEnd:
    """Run a job on a cluster, display its progress, and return its result.

    The run continues if this process dies, and the same command joins it again. The first Ctrl-C drains the run, so
    that it finishes its current episodes; a second one ends only this process.

    Args:
        job: Job with a folder that all nodes can reach.
        address: Address of the cluster.
        slots: Number of workers of each node; 0 for its number of CPUs in Ray.

    Raises:
        InputError: The cluster cannot be reached, or its version, platform or current run does not fit.
    """
    order = RayOrder(
        address=str(address),
        name=hashlib.sha256(job.folder.encode()).hexdigest()[:12],
        job=job.to_text(),
        slots=slots,
        version=nimbus_version(),
        platform=platform_name(),
    )
    with make_owned("nimbus-ray-") as folder:
        with StatusDashboard(folder) as dashboard:
            return _follow(order, folder, dashboard.look)


def _follow(order: RayOrder, folder: Path, look: Callable[[], int]) -> HeadEnd:
    """Run the child program, and show the content of its lines."""
    with (folder / "log").open("w") as log, Interruption() as interruption:
        process = subprocess.Popen(
            module_command("nimbus.runner.cluster.on_ray.follow"),
            cwd="/",  # Ray adds the current folder, which may be a dataset of others, to its workers' module path
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=_environment(),
            umask=0o077,  # Ray may write the token into a file
            start_new_session=True,
        )
        assert process.stdin and process.stdout
        try:
            process.stdin.write(to_json(order))
            process.stdin.close()
            has_asked = False
            for text in process.stdout:
                with suppress(ValueError):  # a line printed by Ray
                    line = from_json(RayLine, text)
                    if line.error:
                        raise InputError.from_diagnostic(line.error)
                    if line.end:
                        look()
                        with suppress(subprocess.TimeoutExpired):  # the child removes the head actor before it exits
                            process.wait(_FAREWELL)
                        return line.end
                    if line.note:
                        write_error(f"{line.note}\n")
                    if line.status:
                        (folder / STATUS_NAME).write_text(line.status)
                        look()
                if interruption.requested and not has_asked:
                    has_asked = True
                    process.send_signal(signal.SIGTERM)
            process.wait()
            last = (folder / "log").read_text(errors="replace").strip().splitlines()[-1:]
            what = f"the Ray cluster is gone: {''.join(last)}"[:300]
            return HeadEnd(state="failed", line=f"{what}; the same command on a new cluster continues")
        finally:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    settings = {"RAY_USAGE_STATS_ENABLED": "0"}
    if read_token():
        settings["RAY_AUTH_MODE"] = os.environ.get("RAY_AUTH_MODE", "token")
    return module_environment(**settings)
