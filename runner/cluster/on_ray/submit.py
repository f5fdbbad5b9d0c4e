"""Submission of a run as a Ray job through the dashboard's REST API; Ray need not be installed on this machine."""

from __future__ import annotations

import json
import shlex
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.runner.cell.run import SHORT
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.cluster.on_ray.reach import check_reachable, read_token
from nimbus.runner.system.output import write_error, write_out
from nimbus.runner.system.processes import Interruption

_TIMEOUT = 20.0
"""Time limit for an answer of the dashboard [s]."""
_LOOK = 1.0
"""Interval between readings of the job [s]."""
_SHARE = 10.0
"""Smallest ratio of the interval to the duration of a reading; each reading fetches the whole log."""
_AWAY = 60.0
"""Time without an answer after which the command gives up; the job continues [s]."""
_BUSY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
_OVER = ("SUCCEEDED", "FAILED", "STOPPED")


class JobClient:
    """Client of the job API of Ray's dashboard.

    Args:
        address: Address of the dashboard.
    """

    def __init__(self, address: ClusterAddress) -> None:
        self._address = address
        self._headers = {"Content-Type": "application/json"}
        if token := read_token():
            self._headers["Authorization"] = f"Bearer {token}"

    def submit(self, command: Sequence[str]) -> str:
        """Start a command on the head; return the id of its job.

        Raises:
            InputError: The cluster refuses the command, or does not answer.
        """
        return str(self._ask("POST", "/api/jobs/", {"entrypoint": shlex.join(command)})["submission_id"])

    def status(self, job: str) -> tuple[str, int | None, str]:
        """Return the state, the exit code (None while it is unknown) and the message of a job."""
        found = self._ask("GET", f"/api/jobs/{job}")
        return str(found["status"]), found.get("driver_exit_code"), str(found.get("message") or "")

    def log(self, job: str) -> str:
        """Return the output of a job."""
        return str(self._ask("GET", f"/api/jobs/{job}/logs").get("logs") or "")

    def stop(self, job: str) -> None:
        """Stop a job."""
        self._ask("POST", f"/api/jobs/{job}/stop")

    def _ask(self, method: str, path: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
        url, where = f"{self._address}{path}", f"--cluster {self._address}"
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(url, data=body, headers=self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                what = "the cluster refuses this token" if read_token() else "the cluster asks for a token"
                raise InputError(what, where=where, instead="copy its token to ~/.ray/auth_token") from None
            what, instead = f"Ray's dashboard answers {error.code} {error.reason}", "look at the cluster's head"
            kind = DashboardAwayError if error.code in _BUSY else InputError
            raise kind(what, where=where, instead=instead) from None
        except (OSError, ValueError) as error:
            what, instead = f"Ray's dashboard does not answer: {error}", "check host and port; a job goes on"
            raise DashboardAwayError(what, where=where, instead=instead) from None


class DashboardAwayError(InputError):
    """Raised when the dashboard does not answer; the request may be repeated."""


def submit_to_ray(address: ClusterAddress, words: Sequence[str]) -> int:
    """Run a command of Nimbus on the head of a cluster, show its output, and return its exit code.

    Args:
        address: Address of the dashboard.
        words: Command line of this run; on the head, ``auto`` replaces the cluster's address.

    Raises:
        InputError: The cluster does not answer, or refuses the job.
        KeyboardInterrupt: The user interrupted the command, and the job was stopped.
    """
    check_reachable(address)
    client = JobClient(address)
    job = client.submit(["nimbus", *_on_the_head(words)])
    write_error(f"job {job} on {address.host}\n")
    shown, heard, has_asked = 0, time.monotonic(), False
    with Interruption() as interruption:
        while True:
            try:
                begin = time.monotonic()
                if interruption.requested and not has_asked:
                    client.stop(job)
                    has_asked = True
                state, code, message = client.status(job)
                log = client.log(job)
                heard = time.monotonic()
            except DashboardAwayError:
                if time.monotonic() - heard > _AWAY:
                    raise
                time.sleep(_LOOK)
                continue
            write_out(log[shown:])
            shown = len(log)
            if state in _OVER:
                break
            time.sleep(max(_LOOK, _SHARE * (heard - begin)))
    if has_asked:
        raise KeyboardInterrupt
    if state == "FAILED" and code is None:
        write_error(f"the job failed: {message.strip().splitlines()[0] if message.strip() else state}\n")
    return 0 if state == "SUCCEEDED" else code or SHORT


def _on_the_head(words: Sequence[str]) -> list[str]:
    """Return a command line in which the value of ``--cluster`` is ``auto``, in either form of the option."""
    found: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        is_value = before == "--cluster"
        found.append("auto" if is_value else "--cluster=auto" if word.startswith("--cluster=") else word)
    return found
