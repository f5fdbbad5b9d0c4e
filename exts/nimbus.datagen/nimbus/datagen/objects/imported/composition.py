"""Limit of the number of prims of a USD stage before composition, because references can multiply them."""
# The stubs of pxr say that every Get returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular

_PRIMS = 100_000
"""Largest number of prims in a composed stage; USD composes half as many in 2 s of CPU, with 130 MB."""
_LAYERS = 1000
"""Largest number of files that refer to each other; an asset has a few tens."""
_DEPTH = 100
"""Largest depth of nested prims and references; scenes have about ten."""


_INSTEAD = "export it again as one mesh"
_FLAT = "write the path of the file itself, or flatten the stage"


def check_growth(path: Path, *, most: int = _PRIMS, is_closed: bool = True) -> None:
    """Check the number of prims that a file's stage would have, including those of references to other files.

    Layers are parsed but not composed. Every variant counts, because a variant may refer to another one.

    Args:
        path: The file.
        most: Largest number of prims.
        is_closed: Refuse references to files outside the file's folder.

    Raises:
        InputError: There are too many prims or files, the nesting is too deep, a layer has expression variables, or a
            reference is an expression, or to a file outside the folder, or to something that is not a regular file.
        Tf.ErrorException: USD cannot parse the file.
    """
    from pxr import Sdf

    layer: Any = Sdf.Layer.FindOrOpen(str(path))
    if layer is not None:
        growth = _Growth(path, most, is_closed=is_closed)
        growth.count(growth.stack(layer), layer.pseudoRoot.path, 0)


class _Growth:
    """Counter of prims by file and path.

    Args:
        path: File named by the user.
        most: Largest number of prims.
        is_closed: Refuse references to files outside the file's folder.
    """

    def __init__(self, path: Path, most: int, *, is_closed: bool) -> None:
        self._path, self._most = path, most
        self._folder = path.parent.resolve() if is_closed else Path("/")
        self._known: dict[tuple[str, Any], int] = {}
        self._stacks: dict[str, list[Any]] = {}

    def stack(self, layer: Any) -> list[Any]:
        """List a layer and its sublayers."""
        if layer.identifier not in self._stacks:
            self._stacks[layer.identifier] = found = [layer]
            for above in found:
                if above.pseudoRoot.HasInfo("expressionVariables"):
                    raise self._refusal("has expression variables, which may change its references", _FLAT)
                below = (self._open(above, path) for path in above.subLayerPaths)
                found += [one for one in below if one is not None and one not in found]
                if len(found) > _LAYERS:
                    raise self._refusal(f"consists of more than {_LAYERS:,} files")
        return self._stacks[layer.identifier]

    def count(self, stack: list[Any], at: Any, depth: int) -> int:
        """Count the prims at a path of a stack of layers, including those of their references."""
        key = stack[0].identifier, at
        if key in self._known:
            return self._known[key]
        if depth > _DEPTH:
            raise self._refusal(f"prims and references are nested more than {_DEPTH} deep")
        self._known[key] = 1  # USD itself reports circular references
        specs = [(layer, spec) for layer in stack if (spec := layer.GetPrimAtPath(at))]
        found = 1 if specs else 0
        for child in dict.fromkeys(path for _, spec in specs for path in _children(spec)):
            found += self.count(stack, child, depth + 1)
        for layer, spec in specs:
            for file, target in _targets(spec):
                other = self._open(layer, file) if file else stack[0]
                if other is not None:
                    inside = stack if other is stack[0] else self.stack(other)
                    default = inside[0].pseudoRoot.path.AppendChild(inside[0].defaultPrim or "none")
                    found += self.count(inside, target or default, depth + 1)
        self._known[key] = min(found, 2 * self._most)
        if found > self._most:
            raise self._refusal(f"has more than {self._most:,} prims with its references")
        return found

    def _open(self, layer: Any, file: str) -> Any:
        """Open a referenced file; None if USD would skip it with a warning."""
        from pxr import Sdf, Tf

        if Sdf.VariableExpression.IsExpression(file):
            raise self._refusal(f"refers to the expression {file[:200]}, not to a file", _FLAT)
        place = layer.ComputeAbsolutePath(file)
        real = outer_file(place)
        if not real.resolve().is_relative_to(self._folder):
            instead = "copy the file into the folder of the asset"
            raise InputError(f"refers to '{real}' outside its folder", where=str(self._path), instead=instead)
        if not real.exists():
            return None
        check_regular(real)
        with suppress(Tf.ErrorException):
            opened = Sdf.Layer.FindOrOpen(place)
            if len(self._stacks) > _LAYERS:
                raise self._refusal(f"consists of more than {_LAYERS:,} files")
            return opened
        return None

    def _refusal(self, what: str, instead: str = _INSTEAD) -> InputError:
        return InputError(what, where=str(self._path), instead=instead)


def outer_file(place: str) -> Path:
    """Return the file on disk of a place in USD: a file, or the package that contains it, as in ``a.usdz[b.png]``.

    Folders and files may have brackets in their names, too.
    """
    from pxr import Ar

    plain = place.split(":SDF_FORMAT_ARGS:")[0]
    parts: Any = Ar.SplitPackageRelativePathOuter(plain)
    return Path(parts[0] if Ar.IsPackageRelativePath(plain) else plain)


def _children(prim: Any) -> Iterator[Any]:
    """Yield the children of a prim in its layer."""
    yield from (child.path for child in prim.nameChildren)
    if prim.path.pathString != "/":
        for variants in prim.variantSets.values():
            yield from (variant.primSpec.path for variant in variants.variantList)


def _targets(prim: Any) -> Iterator[tuple[str, Any]]:
    """Yield the targets of a prim's references: file ("" for the prim's own) and path (None for the default prim)."""
    for kept in (prim.referenceList, prim.payloadList):
        for arc in kept.GetAddedOrExplicitItems():
            yield arc.assetPath, arc.primPath or None
    for kept in (prim.inheritPathList, prim.specializesList):
        for path in kept.GetAddedOrExplicitItems():
            yield "", path
