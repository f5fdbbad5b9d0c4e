"""Signed URLs: only the head has the keys of a store, and gives nodes temporary access to their objects."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable

from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.object_store import ObjectStore, StoreAwayError, has_credentials
from nimbus.runner.cluster.line_socket import HeadClient, HeadUnreachableError
from nimbus.runner.cluster.messages import SignatureRequest, Signed

VALID = 900.0
"""Validity of a URL [s]; a running upload continues beyond it, and a later one requests a new URL."""
UPLOADS = "NIMBUS_UPLOADS"
"""Environment variable of a node; ``signed`` disables its own credentials."""
_EPISODE = re.compile(r"(?:episodes|failures)/[A-Za-z0-9_.+=-]*-([0-9]{6,})-v[0-9]+-[A-Za-z0-9_.-]+")
_INCIDENT = re.compile(r"incidents/([A-Za-z0-9][A-Za-z0-9_.-]*)(?:/[A-Za-z0-9_+=-][A-Za-z0-9_.+=-]*)+")


def is_allowed(name: str, node: str, may_write: Callable[[int], bool]) -> bool:
    """Return True if a node may use an object of an episode that it holds, or of its own incident.

    Args:
        name: Path of the object in the dataset.
        node: Name of the node.
        may_write: Returns True for the index of a writable episode.
    """
    if episode := _EPISODE.fullmatch(name):
        return may_write(int(episode[1]))
    incident = _INCIDENT.fullmatch(name)
    return incident is not None and incident[1].startswith(f"{node}-") and ".." not in name


class UrlSigner:
    """Head's side: signs for one dataset.

    Args:
        address: Address of the dataset.
    """

    def __init__(self, address: StoreAddress) -> None:
        self._store = ObjectStore(address)

    def sign(self, name: str, method: str) -> str:
        """Return a URL for one object and method; raises what :meth:`ObjectStore.sign` does."""
        return self._store.sign(name, method=method, seconds=VALID)


class HeadSignatures:
    """Node's side: requests URLs from the head on its own connection. Thread-safe.

    Args:
        node: Name of the node.
        client: The connection.
    """

    def __init__(self, node: str, client: HeadClient) -> None:
        self._node, self._client, self._lock = node, client, threading.Lock()

    def ask(self, group: str, name: str, method: str) -> str:
        """Return a URL.

        Args:
            group: Task whose dataset has the object.
            name: Path of the object in it.
            method: ``PUT``, ``GET`` or ``HEAD``.

        Raises:
            StoreAwayError: The head does not answer, or refuses to sign now.
        """
        request = SignatureRequest(node=self._node, group=group, name=name, method=method)
        try:
            with self._lock:
                answer = self._client.ask(request)
        except HeadUnreachableError as error:
            raise StoreAwayError(f"no signature: {error}", where=name, instead="wait for the head") from None
        if not isinstance(answer, Signed) or not answer.url:
            raise StoreAwayError("the head does not sign this now", where=name, instead="wait for the head")
        return answer.url

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def needs_signatures(address: StoreAddress) -> bool:
    """Return True if this node has no credentials of its own for a store."""
    return address.scheme == "s3" and (os.environ.get(UPLOADS) == "signed" or not has_credentials(address))
