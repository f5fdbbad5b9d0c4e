"""Signed URLs for nodes without credentials: the head gives them temporary access to single objects of a store."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable

from nimbus.datagen.errors import StoreAwayError
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.store_client import has_credentials
from nimbus.runner.cluster.line_socket import HeadClient, HeadUnreachableError
from nimbus.runner.cluster.messages import SignatureRequest, Signed

VALID = 900.0
"""Validity of a URL [s]; an upload that has begun may take longer, and each later one requests a new URL."""
UPLOADS = "NIMBUS_UPLOADS"
"""Environment variable of a node; with the value ``signed``, the node does not use its own credentials."""
_EPISODE = re.compile(r"(?:episodes|failures)/[A-Za-z0-9_.+=-]*-([0-9]{6,})-v[0-9]+-[A-Za-z0-9_.-]+")
_INCIDENT = re.compile(r"incidents/([A-Za-z0-9][A-Za-z0-9_.-]*)(?:/[A-Za-z0-9_+=-][A-Za-z0-9_.+=-]*)+")


def is_allowed(name: str, node: str, may_write: Callable[[int], bool]) -> bool:
    """Return True if an object belongs to an episode that a node may write, or to one of the node's own incidents.

    Args:
        name: Path of the object in the dataset.
        node: Name of the node.
        may_write: Returns True if the node may write the episode with an index.
    """
    if episode := _EPISODE.fullmatch(name):
        return may_write(int(episode[1]))
    incident = _INCIDENT.fullmatch(name)
    # Another node's name may begin with this one's.
    own = incident is not None and re.fullmatch(rf"{re.escape(node)}-\d{{8}}-\d{{6}}-\d+-\w+", incident[1])
    return bool(own) and ".." not in name


class UrlSigner:
    """Signs URLs for the objects of one dataset, on the head.

    Args:
        address: Address of the dataset.
    """

    def __init__(self, address: StoreAddress) -> None:
        self._store = ObjectStore(address)

    def sign(self, name: str, method: str) -> str:
        """Return a signed URL for one object and HTTP method; raises the errors of :meth:`ObjectStore.sign`."""
        return self._store.sign(name, method=method, seconds=VALID)


class HeadSignatures:
    """Requests signed URLs from the head, on a node. Thread-safe.

    Args:
        node: Name of the node.
        client: Connection to the head that only this object uses.
    """

    def __init__(self, node: str, client: HeadClient) -> None:
        self._node, self._client, self._lock = node, client, threading.Lock()

    def ask(self, group: str, name: str, method: str) -> str:
        """Return a signed URL for one object.

        Args:
            group: Group of the task whose dataset contains the object.
            name: Path of the object in the dataset.
            method: ``PUT``, ``GET`` or ``HEAD``.

        Raises:
            StoreAwayError: The head does not answer, or does not sign the URL.
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
    """Return True if this node has no credentials for a store, or must not use them."""
    return address.scheme == "s3" and (os.environ.get(UPLOADS) == "signed" or not has_credentials(address))
