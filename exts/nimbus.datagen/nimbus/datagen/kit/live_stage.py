"""Physics of the stage that is open in Kit, stepped by skills that run in the editor process.

Kit's timeline plays, but Kit's own updates do not step physics. Only orders step it, so that skills observe every step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import carb.settings
import omni.timeline

from nimbus.datagen.errors import InputError
from nimbus.datagen.simulate.hosted_world import Order, obey, parts_of
from nimbus.datagen.simulate.physx_world import PhysxWorld

_log = logging.getLogger(__name__)

_PLAY_SIMULATIONS = "/app/player/playSimulations"
"""Setting that makes Kit's own updates step physics while the timeline plays."""
_LONGEST = 3600.0
"""End of the timeline during a live plan [s]; it is far away, because Kit stops physics there."""


class LiveStage:
    """Executes one order at a time, in a later :meth:`update`.

    Args:
        show: Function that opens a stage in the background; raises :class:`InputError` if it cannot.
        is_opening: Function that returns True while a stage is being opened.
        is_open: Function that returns True for the stage that is open.
        answer: Function that receives the answer to an order.
    """

    def __init__(
        self,
        show: Callable[[Path], None],
        *,
        is_opening: Callable[[], bool],
        is_open: Callable[[Path], bool],
        answer: Callable[[dict[str, Any]], None],
    ) -> None:
        self._show, self._is_opening, self._is_open, self._answer = show, is_opening, is_open, answer
        self._order: Order | None = None
        self._world: PhysxWorld | None = None
        self._played: bool | None = None
        """Value of the setting before the live plan; None without a live plan."""

    @property
    def is_active(self) -> bool:
        """True from the first order until the end of the plan."""
        return self._order is not None or self._world is not None

    def take(self, order: Order) -> None:
        """Accept an order; the order ``end`` is executed at once."""
        if order["do"] == "end":
            self.end()
            return
        self._order = order
        if order["do"] == "open":
            self._world = None
            try:
                self._show(Path(order["path"]))
            except InputError as error:
                self._refuse(error.what, instead=error.diagnostic.instead)

    def update(self) -> None:
        """Execute the order if Kit is ready; a paused timeline delays it, and a stopped timeline ends the plan."""
        order = self._order
        if order is None or self._is_opening():
            return
        if order["do"] == "open":
            if self._is_open(Path(order["path"])):
                self._start(order)
            else:
                self._refuse(f"Kit has not opened {order['path']}", instead="try again")
            return
        timeline = omni.timeline.get_timeline_interface()
        if self._world is None or timeline.is_stopped():
            self._refuse(
                "the timeline was stopped, and physics with it", instead="pause it, or press Stop in the panel"
            )
        elif timeline.is_playing():
            self._obey(self._world, order)

    def end(self) -> None:
        """Pause the timeline, and let Kit's own updates step physics again."""
        if self._world is not None:
            omni.timeline.get_timeline_interface().pause()
        self._world = self._order = None
        if self._played is not None:
            carb.settings.get_settings().set_bool(_PLAY_SIMULATIONS, self._played)
            self._played = None

    def _start(self, order: Order) -> None:
        settings, timeline = carb.settings.get_settings(), omni.timeline.get_timeline_interface()
        if self._played is None:
            self._played = settings.get_as_bool(_PLAY_SIMULATIONS)
        settings.set_bool(_PLAY_SIMULATIONS, False)
        timeline.set_end_time(_LONGEST)
        timeline.set_current_time(0.0)
        try:
            self._world = PhysxWorld(parts_of(order))
        except Exception as error:
            self._fail(error)
            return
        self._obey(self._world, order)

    def _obey(self, world: PhysxWorld, order: Order) -> None:
        try:
            answer = obey(world, order)
        except Exception as error:
            self._fail(error)
            return
        self._reply(answer)

    def _fail(self, error: Exception) -> None:
        """End the plan with an error of the engine; the process of the plan waits until it gets an answer."""
        _log.error("live plan: physics failed", exc_info=error)
        self._world = None
        self._refuse(f"physics failed: {error}", instead="see Kit's log, then press Plan live again")

    def _refuse(self, what: str, *, instead: str) -> None:
        self._reply({"error": what, "instead": instead})

    def _reply(self, answer: dict[str, Any]) -> None:
        number = self._order["number"] if self._order else 0
        self._order = None
        self._answer(answer | {"number": number})
