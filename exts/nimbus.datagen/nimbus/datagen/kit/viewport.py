"""Shows stages in Kit's viewport, and pages in the user's browser."""

from __future__ import annotations

import asyncio
import webbrowser
from pathlib import Path

import omni.kit.async_engine
import omni.usd

from nimbus.datagen.errors import InputError


class KitViewport:
    """The stage that is open in Kit."""

    def __init__(self) -> None:
        self._opening: asyncio.Future[None] | None = None

    def show_stage(self, path: Path) -> None:
        """Open a stage in place of the one that is open, in the background.

        Raises:
            InputError: The open stage has changes that would be lost.
        """
        if omni.usd.get_context().has_pending_edit():
            instead = "save it, or make a new one with File > New"
            raise InputError("the open stage has changes that are not saved", instead=instead)
        self.close()
        self._opening = omni.kit.async_engine.run_coroutine(self._open(path))

    def open_page(self, path: Path) -> None:
        """Open a page in the browser."""
        webbrowser.open(path.absolute().as_uri())

    def close(self) -> None:
        """Give up what is still being opened."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None

    async def _open(self, path: Path) -> None:
        await omni.usd.get_context().open_stage_async(str(path))
        self._opening = None
