"""Elements that the studio shows, and what a browser's message does to them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

Place = tuple[str, str]
"""The folder or tab of an element, and its label."""


def controls(studio: Any) -> dict[Place, Any]:
    """All inputs of a studio that can be used now."""
    return inputs(studio.server.gui)


def inputs(gui: Any) -> dict[Place, Any]:
    """All inputs that can be used now."""
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
    """Do what a browser's message does: the value arrives, and what waits for it is called."""
    if value is not None:
        handle._impl.value = value
    for call in list(handle._impl.update_cb):
        call(SimpleNamespace(target=handle, client=None, client_id=0))
