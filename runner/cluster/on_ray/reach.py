"""Checks before a Ray cluster is used: the head answers, a token is set if needed, and a folder belongs to the user."""

from __future__ import annotations

import ipaddress
import os
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.owned_folder import OwnedFolder, remove_stale
from nimbus.datagen.files.trusted_servers import dial
from nimbus.datagen.files.variables import variable_path
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.system.output import write_error

_TOKEN_PATH = "RAY_AUTH_TOKEN_PATH"
_CONNECT = 5.0
"""Time limit for a connection to a head [s]."""


def check_reachable(address: ClusterAddress) -> None:
    """Check that a head answers, and that a token is set if one is required.

    This takes at most a few seconds; Ray itself needs half a minute to find that there is no head.

    Raises:
        InputError: No head answers, or it is on another machine and no token is set, or another user of this machine
            has started it, whose answers Ray would execute.
    """
    if address.kind in ("local", "auto"):
        return
    try:
        dial(address.host, address.port, seconds=_CONNECT, only_trusted=True).close()
    except OSError as error:
        what = f"no head of a Ray cluster answers: {error.strerror or error}"
        port = {"ray": "10001, of its client server", "http": "8265, of its dashboard"}[address.kind]
        raise InputError(what, where=f"--cluster {address}", instead=f"check host and port ({port})") from None
    check_token(address.host, where=f"--cluster {address}")


def check_token(host: str, *, where: str) -> None:
    """Require a token for a cluster that other machines can reach, because otherwise anyone can run code on it.

    Args:
        host: Address or name of the cluster's head.
        where: Location for the error.

    Raises:
        InputError: The head is not on loopback, and no token is set.
    """
    if is_loopback(host) or read_token():
        return
    raise open_cluster(host, where=where, reason="there is no token for it")


def open_cluster(host: str, *, where: str, reason: str = "it answers without a token") -> InputError:
    """Return the error for a cluster in which any process that reaches it could run code."""
    what = f"the cluster at {host} is open to other machines, and {reason}"
    instead = "start it with RAY_AUTH_MODE=token on every node, and put its token into ~/.ray/auth_token here"
    return InputError(what, where=where, instead=instead)


def warn_of_plain_token(address: ClusterAddress) -> None:
    """Write a line if the token is about to be sent unencrypted to another machine."""
    is_encrypted = address.kind == "ray" and os.environ.get("RAY_USE_TLS") == "1"
    if address.kind in ("http", "ray") and read_token() and not is_encrypted and not is_loopback(address.host):
        instead = "use a private network, or an SSH tunnel and --cluster with 127.0.0.1"
        write_error(f"--cluster {address}: the token is sent unencrypted to {address.host}; {instead}\n")


def read_token() -> str:
    """Return Ray's token, empty if there is none.

    It is read from ``RAY_AUTH_TOKEN``, the file in ``RAY_AUTH_TOKEN_PATH``, or ``~/.ray/auth_token``, in this order.

    Raises:
        InputError: ``RAY_AUTH_TOKEN_PATH`` is a relative path.
    """
    if token := os.environ.get("RAY_AUTH_TOKEN"):
        return token.strip()
    named = os.environ.get(_TOKEN_PATH)
    path = variable_path(_TOKEN_PATH, named) if named else Path.home() / ".ray" / "auth_token"
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def is_loopback(host: str) -> bool:
    """Return True if a host is a loopback address, or a name that resolves only to such addresses."""
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
        return bool(found) and all(ipaddress.ip_address(text).is_loopback for text in found)
    except (OSError, ValueError):
        return False


def own_root(root: Path) -> Path:
    """Return a folder that belongs to this user, below one that all users can write to.

    Args:
        root: Wanted path. If it belongs to another user or is no folder, a new folder with a random suffix is created.
    """
    with suppress(FileExistsError):
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = root.lstat()
    if S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
        return root
    return Path(tempfile.mkdtemp(prefix=f"{root.name}-", dir=root.parent))


def own_node_folder(root: Path, name: str, node: str) -> OwnedFolder:
    """Take over the folder of a node, with the files of an earlier actor, and remove the folders of killed raylets.

    Args:
        root: Folder of all nodes of this user.
        name: Name of the run.
        node: Name of the node; a restarted raylet has another name.

    Raises:
        FolderTakenError: Another process owns the folder of the node.
    """
    # The folder is claimed before stale ones are removed: it may hold undelivered episodes of an earlier actor.
    own = OwnedFolder(root / name / node)
    remove_stale(root.glob("*/*"))
    return own


def refusal(error: Exception, *, where: str) -> InputError:
    """Convert an error of Ray to an error with location and fix.

    Args:
        error: Error raised by Ray.
        where: Location for the new error.
    """
    text = str(error)
    lower = text.lower()
    if "unauthenticated" in lower or "authentication token" in lower or "authenticationerror" in lower:
        instead = "copy the token of the cluster to ~/.ray/auth_token, and set RAY_AUTH_MODE=token"
        return InputError("the cluster refuses this token, or requires one", where=where, instead=instead)
    if "version mismatch" in lower:
        found = " ".join(line.strip() for line in text.splitlines() if "Ray:" in line or "Python:" in line)
        instead = "install the Ray and Python of the cluster here"
        return InputError(f"the cluster has other versions: {found[:300]}", where=where, instead=instead)
    if "has no attribute" in lower or "modulenotfounderror" in lower or "unpicklingerror" in lower:
        instead = "install the Ray and Python of the cluster here"
        what = f"the cluster has another version of Ray, which does not read this one's messages: {first_line(error)}"
        return InputError(what, where=where, instead=instead)
    if "starting ray client server failed" in lower:
        what = "the cluster did not start its client server for this command in time"
        instead = "run the same command again, or on the head with --cluster auto, or give http://HOST:8265"
        return InputError(what, where=where, instead=instead)
    if isinstance(error, ConnectionError) or "unavailable" in lower or "failed to connect" in lower:
        instead = "start one with a token as in docs/cluster.md, or give its address"
        return InputError(f"no Ray cluster answers: {first_line(error)}", where=where, instead=instead)
    return InputError(f"Ray: {first_line(error)}", where=where, instead="see docs/cluster.md")


def first_line(error: Exception) -> str:
    """Return the last line of a traceback, or the first line of another text; at most 300 characters."""
    # The text of a gRPC error begins with the name of its class; its method ``details`` returns only the message.
    details = getattr(error, "details", None)
    text = str(details() if callable(details) else error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines and "Error" in lines[-1] else lines[0] if lines else type(error).__name__)[:300]
