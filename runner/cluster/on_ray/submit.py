"""Submission of a run as a Ray job through the dashboard's REST API; Ray need not be installed on this machine."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import parse_json
from nimbus.datagen.language_model.exchange import Address, NoReply, exchange
from nimbus.runner.cell.run import SHORT
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.cluster.on_ray.reach import check_reachable, is_loopback, open_cluster, read_token
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
_LOG_BYTES = 64 << 20
"""Largest accepted log, and so the largest answer [bytes]."""
_BUSY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
_MOST_CODE = 255
"""Largest exit code of a process."""
_OVER = ("SUCCEEDED", "FAILED", "STOPPED")


class JobClient:
    """Client of the job API of Ray's dashboard.

    Args:
        address: Address of the dashboard.
    """

    def __init__(self, address: ClusterAddress) -> None:
        self._address = address
        self._server = Address(str(address), read_token())

    def check_asks_for_token(self) -> None:
        """Check that a dashboard that other machines can reach refuses requests without a token.

        Raises:
            InputError: It answers them.
        """
        if is_loopback(self._address.host):
            return
        where = f"--cluster {self._address}"
        try:
            sent = exchange(Address(str(self._address), ""), "/api/version", None, seconds=_TIMEOUT, limit=_LOG_BYTES)
        except NoReply:
            return  # the next request reports it
        if sent.status == HTTPStatus.OK:
            raise open_cluster(self._address.host, where=where)

    def submit(self, command: Sequence[str]) -> str:
        """Start a command on the head; return the id of its job.

        Raises:
            InputError: The cluster refuses the command, or does not answer.
        """
        found = self._ask("/api/jobs/", {"entrypoint": shlex.join(command)})
        return str(self._entry(found, "submission_id"))

    def status(self, job: str) -> tuple[str, int | None, str]:
        """Return the state, the exit code (None while it is unknown) and the message of a job."""
        found = self._ask(f"/api/jobs/{_quoted(job)}")
        code = found.get("driver_exit_code")
        known = code if type(code) is int and 0 <= code <= _MOST_CODE else None
        return str(self._entry(found, "status")), known, str(found.get("message") or "")

    def log(self, job: str) -> str:
        """Return the output of a job."""
        return str(self._ask(f"/api/jobs/{_quoted(job)}/logs").get("logs") or "")

    def stop(self, job: str) -> None:
        """Stop a job."""
        self._ask(f"/api/jobs/{_quoted(job)}/stop", {})

    def _ask(self, path: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, a POST if there is content. Redirects are errors, so only this address receives the token."""
        where = f"--cluster {self._address}"
        try:
            sent = exchange(self._server, path, content, seconds=_TIMEOUT, limit=_LOG_BYTES)
            found = parse_json(sent.text) if sent.status == HTTPStatus.OK else {}
        except (NoReply, ValueError) as error:
            what, instead = (
                f"Ray's dashboard does not answer: {error}",
                "check host and port; a job that has started continues",
            )
            raise DashboardAwayError(what, where=where, instead=instead) from None
        if sent.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            what = "the cluster refuses this token" if self._server.key else "the cluster requires a token"
            raise InputError(what, where=where, instead="copy its token to ~/.ray/auth_token")
        if sent.status != HTTPStatus.OK:
            kind = DashboardAwayError if sent.status in _BUSY else InputError
            raise kind(f"Ray's dashboard answers {sent.status}", where=where, instead="look at the cluster's head")
        return found if isinstance(found, dict) else {}

    def _entry(self, found: dict[str, Any], name: str) -> object:
        if name not in found:
            what, instead = f"the answer has no '{name}', so this is not a dashboard of Ray", "check host and port"
            raise InputError(what, where=f"--cluster {self._address}", instead=instead)
        return found[name]


def _quoted(job: str) -> str:
    return quote(job, safe="")


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
    client.check_asks_for_token()
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
