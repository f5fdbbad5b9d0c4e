"""Address of a cluster: a number of nodes on this machine, or a Ray cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nimbus.datagen.files.trusted_servers import literal_host

MOST_LOCAL_NODES = 256
"""Largest number of nodes on one machine."""
_FORM = "write local:N, auto, ray://HOST:10001 or http://HOST:8265"


@dataclass(frozen=True, kw_only=True)
class ClusterAddress:
    """Value of ``--cluster``."""

    kind: str
    """``local``, ``auto``, ``ray`` (Ray's client server) or ``http`` (Ray's dashboard, which accepts jobs)."""
    nodes: int = 0
    """Number of nodes on this machine; 0 for a Ray cluster."""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.kind == "local":
            return f"local:{self.nodes}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return "auto" if self.kind == "auto" else f"{self.kind}://{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """True if the nodes are processes of this run."""
        return self.kind == "local"


def parse_cluster(text: str) -> ClusterAddress:
    """Parse ``local:N``, ``auto``, ``ray://HOST:PORT`` or ``http://HOST:PORT``.

    Raise ``ValueError`` for other texts.
    """
    if match := re.fullmatch(r"local:([0-9]{1,3})", text):
        if 1 <= int(match[1]) <= MOST_LOCAL_NODES:
            return ClusterAddress(kind="local", nodes=int(match[1]))
        raise ValueError(f"expected local:1 to local:{MOST_LOCAL_NODES}, found '{text}'")
    if text == "auto":
        return ClusterAddress(kind="auto")
    match = re.fullmatch(r"(ray|http)://([A-Za-z0-9_.-]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})", text)
    if match is None or not 0 < int(match[3]) < 1 << 16:
        raise ValueError(f"expected local:N, such as local:4, or a Ray cluster, found '{text}'; {_FORM}")
    return ClusterAddress(kind=match[1], host=literal_host(match[2].strip("[]")), port=int(match[3]))
