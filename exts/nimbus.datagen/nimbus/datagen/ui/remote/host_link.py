"""Exchange with the host about the stage that it has open: the editor sends an order, the host answers it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.simulate.hosted_world import HostedWorld, Order
from nimbus.datagen.simulate.isaacsim import IsaacSimSimulation

if TYPE_CHECKING:
    from nimbus.datagen.episode.layout import VisualLayout
    from nimbus.datagen.simulate.physics_world import WorldParts
    from nimbus.datagen.tasks.scene_assets import SceneAssets


class StoppedByUser(Exception):
    """Raised inside skills when the user stops a live plan."""


class HostLink:
    """Link that sends orders in the thread of the skills, and receives answers from the thread that reads requests.

    Args:
        send: Sends an order; None for a host without a stage.
    """

    def __init__(self, send: Callable[[Order], None] | None = None) -> None:
        self._send = send
        self._changed = threading.Condition()
        self._answer: dict[str, Any] | None = None
        self._number = 0
        """Number of the last order; a late answer to an earlier one is dropped."""
        self._stops = self._stops_before = 0
        """Number of stops so far, and when the present plan was requested."""
        self._is_closed = False

    @property
    def stop_count(self) -> int:
        """Number of stops so far."""
        return self._stops

    @property
    def is_stopped(self) -> bool:
        """True if the user has stopped since the present plan was requested, or the host has ended."""
        return self._is_closed or self._stops > self._stops_before

    def begin(self, stops_before: int) -> None:
        """Begin a plan.

        Args:
            stops_before: Value of :attr:`stop_count` when the plan was requested; only later stops end the plan.
        """
        with self._changed:
            self._stops_before = stops_before

    def exchange(self, order: Order) -> dict[str, Any]:
        """Send an order and wait for its answer; a stop by the user and the end of the host end the wait.

        Raises:
            StoppedByUser: The user has stopped, or the host has ended.
            InputError: The host cannot execute the order.
        """
        if self._send is None:
            raise InputError("this host runs no physics", instead="use the panel in Isaac Sim")
        with self._changed:
            self._answer, self._number = None, self._number + 1
            if not self.is_stopped:
                self._send(order | {"number": self._number})
            self._changed.wait_for(lambda: self._answer is not None or self.is_stopped)
            if self.is_stopped:
                raise StoppedByUser
            answer = self._answer
        assert answer is not None
        if "error" in answer:
            raise InputError(answer["error"], where="Plan live", instead=answer["instead"])
        return answer

    def end(self) -> None:
        """Return the stage to the host; there is no answer."""
        if self._send is not None and not self._is_closed:
            self._send({"do": "end"})

    def take(self, answer: dict[str, Any]) -> None:
        """Pass the host's answer to the waiting thread; answers to earlier orders are ignored."""
        with self._changed:
            if answer.get("number") == self._number:
                self._answer = answer
                self._changed.notify_all()

    def stop(self) -> None:
        """End the live plan before its next step, or a requested one before it begins."""
        with self._changed:
            self._stops += 1
            self._changed.notify_all()

    def close(self) -> None:
        """End all exchanges, because the host has ended."""
        self._is_closed = True
        self.stop()


class LiveSimulation(IsaacSimSimulation):
    """PhysX in the stage that the host has open, with the looks of the layout.

    Args:
        assets: Scene and robot.
        visual: Looks, cameras and light.
        link: Link to the host.
        rate: Record and command rate [Hz].
    """

    def __init__(self, assets: SceneAssets, visual: VisualLayout, link: HostLink, *, rate: float) -> None:
        super().__init__(assets.stage, assets.robot, rate=rate)
        self.visual, self._link = visual, link
        self.hosted: HostedWorld | None = None
        """The world of the loaded layout."""

    def _open_world(self, path: Path, parts: WorldParts) -> HostedWorld:
        self.hosted = HostedWorld(self._link.exchange, path, parts)
        return self.hosted
