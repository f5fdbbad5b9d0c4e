"""Counts the prims of a USD stage before USD composes it: references to references grow without end in a small file."""
# The stubs of pxr say that every Get returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError

_PRIMS = 100_000
"""Most prims of a composed stage; USD composes half as many in 2 s of CPU, with 130 MB."""
_DEPTH = 100
"""Most prims and references below each other; scenes have about ten."""


def check_growth(path: Path) -> None:
    """Count the prims that a file's stage would have, each reference with all that it leads to.

    Layers are parsed, and nothing is composed. References to other files count as one prim; sublayers do not count.

    Raises:
        InputError: They are too many, or too deep.
        Tf.ErrorException: USD cannot parse the file.
    """
    from pxr import Sdf

    layer: Any = Sdf.Layer.FindOrOpen(str(path))
    known: dict[Any, int] = {}

    def count(prim: Any, depth: int) -> int:
        if prim.path in known:
            return known[prim.path]
        if depth > _DEPTH:
            raise InputError(f"prims and references lie more than {_DEPTH} deep", where=str(path), instead=_INSTEAD)
        known[prim.path] = 1  # what leads to itself is an error of USD's own
        found = 1 + sum(count(child, depth + 1) for child in prim.nameChildren)
        found += sum(count(one, depth + 1) for target in _targets(prim, layer) if (one := layer.GetPrimAtPath(target)))
        known[prim.path] = min(found, 2 * _PRIMS)
        if found > _PRIMS:
            raise InputError(f"it makes more than {_PRIMS:,} prims", where=str(path), instead=_INSTEAD)
        return found

    if layer is not None:
        count(layer.pseudoRoot, 0)


_INSTEAD = "export it again as one mesh"


def _targets(prim: Any, layer: Any) -> Iterator[Any]:
    """List what a prim composes out of its own layer."""
    for kept in (prim.referenceList, prim.payloadList):
        for arc in kept.GetAddedOrExplicitItems():
            if not arc.assetPath:
                yield arc.primPath or layer.pseudoRoot.path.AppendChild(layer.defaultPrim or "none")
    for kept in (prim.inheritPathList, prim.specializesList):
        yield from kept.GetAddedOrExplicitItems()
