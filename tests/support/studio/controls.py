"""Elements of the studio, and the effect of a browser's messages on them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

Place = tuple[str, str]
"""The folder or tab of an element, and its label."""


def controls(studio: Any) -> dict[Place, Any]:
    """Return all enabled inputs of a studio."""
    return inputs(studio.server.gui)


def inputs(gui: Any) -> dict[Place, Any]:
    """Return all enabled inputs."""
    folders = {uuid: _title(container) for uuid, container in gui._container_handle_from_uuid.items()}
    found = {}
    for handle in gui._gui_input_handle_from_uuid.values():
        if "Progress" not in type(handle).__name__:
            place = folders[handle._impl.parent_container_id], handle.label.strip()
            assert place not in found, f"two elements are called {place}"
            found[place] = handle
    return found


def _title(container: Any) -> str:
    return getattr(container, "label", "") or getattr(container, "_label", "") or ""


def use(handle: Any, value: Any = None) -> None:
    """Simulate a browser's message: set the value and call the callbacks."""
    if value is not None:
        handle._impl.value = value
    for call in list(handle._impl.update_cb):
        call(SimpleNamespace(target=handle, client=None, client_id=0))
