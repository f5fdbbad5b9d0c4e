"""Address of the Ray cluster to which this machine belongs, for ``--cluster auto``. No import of Ray.

Ray itself takes the address from the command line of any process that is named ``raylet``, or from a file in ``/tmp``.
Any user of the machine can provide both, and would receive the token and could run code in this user's processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.trusted_servers import literal_host

VARIABLE = "RAY_ADDRESS"
"""Environment variable of Ray with the address of a head; Ray sets it for its jobs."""
_NAME, _FLAG = "raylet", "--gcs-address="
"""Part of the name of Ray's process on a node, and the argument with the address of its head."""
_SUPERUSER = 0


def find_head(*, where: str, processes: Path = Path("/proc")) -> str:
    """Return the address of the head of the cluster that this user or the superuser started on this machine.

    Args:
        where: Location for the error.
        processes: Folder of the kernel with the running processes.

    Raises:
        InputError: There is no such cluster, or there are several.
    """
    if (given := os.environ.get(VARIABLE, "")) not in ("", "auto"):
        scheme, mark, place = given.rpartition("//")
        host, colon, port = place.rpartition(":")
        return f"{scheme}{mark}{literal_host(host)}{colon}{port}"
    found = sorted(set(_addresses(processes)))
    if len(found) == 1:
        return found[0]
    if found:
        what = f"this user has {len(found)} Ray clusters on this machine: {', '.join(found)[:200]}"
        raise InputError(what, where=where, instead=f"set {VARIABLE} to the address of one of them")
    what = "no Ray cluster of this user answers on this machine"
    instead = f"start one with a token as in docs/cluster.md, or set {VARIABLE}=HOST:6379 for another user's"
    raise InputError(what, where=where, instead=instead)


def _addresses(processes: Path) -> Iterator[str]:
    """Yield the addresses of heads in the command lines of trusted users' raylets."""
    for folder in processes.glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if _NAME not in os.path.basename(words[0]) or not _is_trusted(folder):
                continue
            # One of the arguments is the command line of a worker.
            parts = (part for word in words for part in word.split(" ") if part.startswith(_FLAG))
            yield from (part.removeprefix(_FLAG) for part in parts if part not in (_FLAG, f"{_FLAG}None"))


def _is_trusted(folder: Path) -> bool:
    """Return True if a process has been started by this user or the superuser.

    The owner of its folder is no evidence: for a process without core dumps, it is the superuser.
    """
    for line in (folder / "status").read_text(errors="replace").splitlines():
        if line.startswith("Uid:"):
            return {int(word) for word in line.split()[1:]} <= {os.getuid(), _SUPERUSER}
    return False
