"""Comparison of the files that USD has used for a stage with those that were listed, checked and hashed before."""
# The stubs of pxr say that every Get returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported.composition import outer_file


def check_used_files(stage: Any, files: Iterable[str | Path], path: Path) -> None:
    """Refuse a composed stage that uses a file that was not listed.

    The list comes from the layers of a stage one by one; composition may still find other files, and only what is
    listed is checked and hashed.

    Args:
        stage: The opened stage.
        files: Files that were listed, checked and hashed.
        path: File of the stage, for errors.

    Raises:
        InputError: A layer of the stage, or a file that one of its attributes names, is not among the files.
    """
    listed = {_real(str(file)) for file in files}
    for used in _used(stage):
        if _real(used) not in listed:
            what = f"uses '{used[:200]}', which is not among the files that USD lists for it"
            raise InputError(what, where=str(path), instead="write the path of the file itself, or flatten the stage")


def _used(stage: Any) -> Iterator[str]:
    """Yield the files that the attributes of a stage name, at all times, and then the stage's layers."""
    from pxr import Sdf, Usd

    file_types = (Sdf.ValueTypeNames.Asset, Sdf.ValueTypeNames.AssetArray)
    roots = [stage.GetPseudoRoot(), *stage.GetPrototypes()]
    for prim in (prim for root in roots for prim in Usd.PrimRange(root, Usd.PrimAllPrimsPredicate)):
        for attribute in prim.GetAuthoredAttributes():
            for time in (Usd.TimeCode.Default(), *attribute.GetTimeSamples()):
                # The value may come from another layer than the type that USD states for the attribute.
                if any(spec.typeName in file_types for spec in attribute.GetPropertyStack(time)):
                    yield from _resolved(attribute.Get(time))
    for layer in stage.GetUsedLayers():  # last, because USD opens the layers of clips on demand
        if not layer.anonymous:
            yield str(layer.realPath or layer.identifier)


def _resolved(value: Any) -> Iterator[str]:
    """Yield the existing files of an attribute's value, which may be of another type."""
    from pxr import Sdf

    for asset in value if isinstance(value, Sdf.AssetPathArray) else (value,):
        if isinstance(asset, Sdf.AssetPath) and asset.resolvedPath:
            yield str(asset.resolvedPath)


def _real(file: str) -> str:
    return os.path.realpath(outer_file(file))
