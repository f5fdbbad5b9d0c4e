"""Comparison of the files that USD has used for a stage with those that were listed, checked and hashed before."""
# The stubs of pxr say that every Get returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.plain_paths import ALPHABET, is_address, is_plain
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
        InputError: A layer of the stage, or a file that one of its attributes names, is not among the files, or its
            path is not plain.
    """
    listed = {_real(str(file)) for file in files}
    for used in _used(stage, path):
        if _real(used) not in listed:
            what = f"uses '{used[:200]}', which is not among the files that USD lists for it"
            raise InputError(what, where=str(path), instead="write the path of the file itself, or flatten the stage")


def check_written(asset: str, path: Path) -> None:
    """Refuse an address, and a path that Isaac Sim may read in another way than USD's own library.

    Isaac Sim loads an address from a server or a device, and replaces backslashes and coded characters. USD's library
    takes them for parts of names, which a foreign scene may contain.

    Args:
        asset: Value of an attribute, or a reference; it may lead into a package, and name the images of a mosaic.
        path: The scene, for errors.

    Raises:
        InputError: It is no plain path.
    """
    if is_address(asset):
        what, instead = f"refers to the address '{asset[:200]}'", "copy the file into the folder of the scene"
        raise InputError(what, where=str(path), instead=instead)
    if asset and not is_plain(asset.replace("<UDIM>", "1001").replace("[", "/").replace("]", "")):
        what = f"refers to '{asset[:200]}', which Isaac Sim may take for another file"
        raise InputError(what, where=str(path), instead=f"rename the file to {ALPHABET}")


def _used(stage: Any, path: Path) -> Iterator[str]:
    """Yield the files that the attributes of a stage name, at all times, and then the stage's layers."""
    from pxr import Sdf, Usd

    file_types = (Sdf.ValueTypeNames.Asset, Sdf.ValueTypeNames.AssetArray)
    roots = [stage.GetPseudoRoot(), *stage.GetPrototypes()]
    for prim in (prim for root in roots for prim in Usd.PrimRange(root, Usd.PrimAllPrimsPredicate)):
        for attribute in prim.GetAuthoredAttributes():
            for time in (Usd.TimeCode.Default(), *attribute.GetTimeSamples()):
                # The value may come from another layer than the type that USD states for the attribute.
                if any(spec.typeName in file_types for spec in attribute.GetPropertyStack(time)):
                    yield from _resolved(attribute.Get(time), path)
    for layer in stage.GetUsedLayers():  # last, because USD opens the layers of clips on demand
        if not layer.anonymous:
            yield str(layer.realPath or layer.identifier)


def _resolved(value: Any, path: Path) -> Iterator[str]:
    """Yield the existing files of an attribute's value, which may be of another type."""
    from pxr import Sdf

    for asset in value if isinstance(value, Sdf.AssetPathArray) else (value,):
        if isinstance(asset, Sdf.AssetPath):
            check_written(str(asset.path), path)
            if asset.resolvedPath:
                yield str(asset.resolvedPath)


def _real(file: str) -> str:
    return os.path.realpath(outer_file(file))
