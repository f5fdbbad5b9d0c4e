"""Sources and licenses of the imported objects that a task may draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nimbus.datagen.episode.credits import AssetCredit
from nimbus.datagen.objects.prepared.library import PreparedLibrary

if TYPE_CHECKING:
    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.tasks.task import Task


def credits_of(task: Task, libraries: Mapping[str, ObjectLibrary]) -> dict[str, AssetCredit]:
    """Return the credits by ``library/kind``, for the kinds of groups and for libraries from which randomizers draw.

    Args:
        task: Task that draws the objects.
        libraries: Libraries by their name in the task.
    """
    found: dict[str, AssetCredit] = {}
    for name, library in libraries.items():
        if isinstance(library, PreparedLibrary):
            groups = [group.kinds for group in task.objects.values() if group.library == name]
            kinds = library.kinds if not groups or "all" in groups else {kind for group in groups for kind in group}
            for kind in sorted(kinds):
                entry = library.entries[kind]
                source = f"{entry.source}: {entry.path}"
                found[f"{library.name}/{kind}"] = AssetCredit(
                    source=source, license=entry.license, is_restricted=entry.is_restricted
                )
    return found
