"""Stages and markers in Kit's viewport, and pages in the user's browser."""

from __future__ import annotations

import asyncio
import os
import webbrowser
from pathlib import Path
from typing import Any

import omni.kit.app
import omni.kit.async_engine
import omni.timeline
import omni.usd

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.kit.live_stage import LiveStage
from nimbus.datagen.kit.markers import StageMarkers
from nimbus.datagen.kit.stage_variation import StageVariation
from nimbus.datagen.ui.remote.messages import MarkersData


class KitViewport:
    """Stage that is open in Kit, with its markers, changes and live plan."""

    def __init__(self) -> None:
        self._opening: asyncio.Future[None] | None = None
        self._failed = self._own = self._warned = ""
        self._shown: Path | None = None
        """Path of the stage that was opened last."""
        self._markers = StageMarkers()
        self._variation = StageVariation()
        self._answers: list[dict[str, Any]] = []
        self._live = LiveStage(
            self.show_stage,
            is_opening=lambda: self.is_opening,
            is_open=lambda path: self._shown == path,
            answer=self._answers.append,
        )

    def show_stage(self, path: Path, *, duration: float = 0.0) -> None:
        """Open a stage in place of the current one, in the background, and play its animation.

        Raises:
            InputError: The open stage has unsaved changes; a second call discards them, because Isaac Sim itself also
                changes a new stage.
        """
        context = omni.usd.get_context()
        there, is_edited = context.get_stage_url(), context.has_pending_edit()
        if not is_edited:
            self._warned = ""  # the stage was saved: later changes need another warning
        elif there not in (self._own, self._warned):
            self._warned = there
            raise InputError(
                "the open stage has unsaved changes", instead="save the stage, or press again to discard them"
            )
        self._warned = ""
        self._cancel()
        self._opening = omni.kit.async_engine.run_coroutine(self._open(path, duration))

    def take_error(self) -> str:
        """Return the error of the last failed opening of a stage, once; empty without one."""
        failed, self._failed = self._failed, ""
        return failed

    def draw_markers(self, markers: MarkersData) -> None:
        """Draw regions, cameras and spots in the stage."""
        self._markers.draw(omni.usd.get_context().get_stage(), markers)

    def take_moves(self) -> list[tuple[str, Any]]:
        """Return ids and new poses of markers that the user has moved."""
        return self._markers.take_moves(omni.usd.get_context().get_stage())

    def show_variation(self, path: str) -> None:
        """Change the open stage by a layer that is never saved; an empty path removes it."""
        timeline = omni.timeline.get_timeline_interface()
        if not timeline.is_stopped():
            timeline.stop()  # PhysX would otherwise keep the bodies at their simulated poses
        context = omni.usd.get_context()
        is_edited = context.has_pending_edit()
        self._variation.show(context.get_stage(), path)
        context.set_pending_edit(is_edited)

    @property
    def is_opening(self) -> bool:
        """True while a stage is being opened."""
        return self._opening is not None and not self._opening.done()

    @property
    def is_live(self) -> bool:
        """True while skills act in the open stage."""
        return self._live.is_active

    def take_order(self, order: dict[str, Any]) -> None:
        """Accept an order of the skills; :meth:`answer_orders` executes it."""
        self._live.take(order)

    def answer_orders(self) -> list[dict[str, Any]]:
        """Execute the waiting order if Kit is ready; return the answers since the last call."""
        self._live.update()
        answers, self._answers[:] = list(self._answers), []
        return answers

    def open_page(self, page: str) -> None:
        """Open an HTML page in the browser."""
        path = cache_folder("temporary") / f"page-{os.getpid()}.html"
        write_atomic(path, f"<!doctype html><meta charset=utf-8>{page}", durable=False, shared=False)
        webbrowser.open(path.as_uri())

    def close(self) -> None:
        """Cancel a pending stage, end a live plan, and remove the markers and changes."""
        self._cancel()
        self._live.end()
        self._variation.remove()
        self.draw_markers({"regions": [], "cameras": [], "spots": []})

    def _cancel(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None

    async def _open(self, path: Path, duration: float) -> None:
        timeline, context = omni.timeline.get_timeline_interface(), omni.usd.get_context()
        timeline.stop()  # the last animation may loop, and its stage is about to close
        self._variation.remove()
        await omni.kit.app.get_app().next_update_async()
        while not context.can_open_stage():  # Kit cannot interrupt the opening of another stage
            await omni.kit.app.get_app().next_update_async()
        context.disable_save_to_recent_files()
        self._shown = None
        try:
            opened, why = await context.open_stage_async(str(path))
        finally:
            context.enable_save_to_recent_files()
        if not opened:
            self._opening, self._failed = None, f"{path}: Kit cannot open it: {why}"
            return
        self._own, self._shown = context.get_stage_url(), path
        await omni.kit.app.get_app().next_update_async()  # Isaac Sim adds its own schemas to every stage
        self._markers.draw(context.get_stage())
        context.set_pending_edit(False)
        self._opening = None
        if duration > 0.0:
            timeline.set_end_time(duration)
            timeline.set_current_time(0.0)
            timeline.play()
