"""Layer with the differences between two stages of a task; as a stronger layer, it turns the first into the second."""
# The stubs of pxr do not know the properties of Sdf's specs.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_stage_changes(path: Path, *, before: Path, after: Path) -> int:
    """Write the differences; asset paths become absolute, because the layer may be copied to memory.

    Args:
        path: File of the layer.
        before: Stage that is open.
        after: Stage to be shown.

    Returns:
        Number of prims that differ.
    """
    from pxr import Sdf

    old, new = _read(before), _read(after)
    written: Any = Sdf.Layer.CreateNew(str(path))
    changed = 0
    paths = {spec.path: spec for spec in _prims(new)}
    gone = [spec.path for spec in _prims(old) if spec.path not in paths]
    for place in gone:
        if not any(place != other and place.HasPrefix(other) for other in gone):
            _over(written, place).SetInfo("active", False)
            changed += 1
    for place, spec in paths.items():
        if (earlier := old.GetPrimAtPath(place)) is None:
            if written.GetPrimAtPath(place) is None:
                Sdf.CreatePrimInLayer(written, place.GetParentPath())
                Sdf.CopySpec(new, place, written, place)
                changed += 1
        else:
            changed += _write_prim(written, spec, earlier)
    written.Save()
    return changed


def _read(path: Path) -> Any:
    """Return a copy of a stage's layer whose references and asset paths are absolute."""
    from pxr import Sdf, UsdUtils

    layer: Any = Sdf.Layer.FindOrOpen(str(path))
    copy: Any = Sdf.Layer.CreateAnonymous(".usda")
    copy.TransferContent(layer)
    UsdUtils.ModifyAssetPaths(copy, lambda asset: layer.ComputeAbsolutePath(asset) if asset else asset)
    return copy


def _prims(layer: Any) -> list[Any]:
    """Return all prim specs, parents first."""
    found = list(layer.rootPrims)
    for spec in found:
        found += list(spec.nameChildren)  # the loop also visits the appended children
    return found


def _over(layer: Any, path: Any) -> Any:
    from pxr import Sdf

    return Sdf.CreatePrimInLayer(layer, path)


def _write_prim(written: Any, new: Any, old: Any) -> bool:
    """Write the differences of one prim; return False if there are none."""
    from pxr import Sdf

    changes: list[Any] = []
    if _listed(new.referenceList) != _listed(old.referenceList):
        references = [item for item in _listed(new.referenceList)]
        changes.append(lambda spec: setattr(spec.referenceList, "explicitItems", references))
    schemas, earlier = (_schemas(spec) for spec in (new, old))
    if schemas != earlier:
        both = Sdf.TokenListOp()
        both.prependedItems, both.deletedItems = schemas, [name for name in earlier if name not in schemas]
        changes.append(lambda spec: spec.SetInfo("apiSchemas", both))
    if (kind := new.typeName) != old.typeName:
        changes.append(lambda spec: setattr(spec, "typeName", kind))
    if (active := new.active) != old.active:
        changes.append(lambda spec: spec.SetInfo("active", active))
    there = {item.name: item for item in old.properties}
    own = {item.name: item for item in new.properties}
    different = [name for name, item in own.items() if name not in there or not _is_same(item, there[name])]
    lost = [name for name in there if name not in own]
    if not (changes or different or lost):
        return False
    spec = _over(written, new.path)
    for change in changes:
        change(spec)
    for name in different:
        place = new.path.AppendProperty(name)
        Sdf.CopySpec(new.layer, place, written, place)
        if isinstance(own[name], Sdf.RelationshipSpec):
            targets = _listed(own[name].targetPathList)
            spec.relationships[name].targetPathList.ClearEditsAndMakeExplicit()
            spec.relationships[name].targetPathList.explicitItems = targets
    for name in lost:
        _block(written, spec, there[name])
    return True


def _listed(items: Any) -> list[Any]:
    """Return the items that a list operation of a written stage adds or sets."""
    return [*items.explicitItems, *items.prependedItems, *items.addedItems, *items.appendedItems]


def _schemas(spec: Any) -> list[str]:
    found = spec.GetInfo("apiSchemas")
    return [*found.explicitItems, *found.prependedItems, *found.addedItems, *found.appendedItems]


def _is_same(one: Any, other: Any) -> bool:
    """Compare two attributes or relationships."""
    from pxr import Sdf

    if type(one) is not type(other):
        return False
    if isinstance(one, Sdf.RelationshipSpec):
        return _listed(one.targetPathList) == _listed(other.targetPathList)
    if one.typeName != other.typeName or one.connectionPathList != other.connectionPathList:
        return False
    first, second = one.default, other.default
    return bool(first == second)


def _block(written: Any, spec: Any, lost: Any) -> None:
    """Hide a property that the second stage does not have."""
    from pxr import Sdf

    if isinstance(lost, Sdf.RelationshipSpec):
        made: Any = Sdf.RelationshipSpec(spec, lost.name)
        made.targetPathList.ClearEditsAndMakeExplicit()
    else:
        made = Sdf.AttributeSpec(spec, lost.name, lost.typeName)
        made.default = Sdf.ValueBlock()
