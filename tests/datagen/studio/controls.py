"""Every control that the studio shows, and how a browser uses it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

Place = tuple[str, str]
"""The folder or tab that a control lies in, and its label."""


def controls(studio: Any) -> dict[Place, Any]:
    """All that can be used now."""
    gui = studio.server.gui
    folders = {uuid: _title(container) for uuid, container in gui._container_handle_from_uuid.items()}
    found = {}
    for handle in gui._gui_input_handle_from_uuid.values():
        if "Progress" not in type(handle).__name__:
            place = folders[handle._impl.parent_container_id], handle.label.strip()
            assert place not in found, f"two controls are called {place}"
            found[place] = handle
    return found


def _title(container: Any) -> str:
    return getattr(container, "label", "") or getattr(container, "_label", "") or ""


def use(handle: Any, value: Any = None) -> None:
    """What a browser's message does: the value arrives, and what waits for it is called."""
    if value is not None:
        handle._impl.value = value
    for call in list(handle._impl.update_cb):
        call(SimpleNamespace(target=handle, client=None, client_id=0))


class Actions(dict[Place, Callable[..., None]]):
    """What uses each control, and sees what comes of it; its parameters without a default are fixtures."""

    def at(self, folder: str, *labels: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Note a function as the one that uses these controls of a folder."""

        def noted(act: Callable[..., None]) -> Callable[..., None]:
            self.update({(folder, label): act for label in labels})
            return act

        return noted
