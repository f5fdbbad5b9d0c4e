"""Orders to the program that has the stage open, and their answers."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.ui.remote.host_link import HostLink


def test_late_answers_are_dropped():
    """A plan that was stopped leaves an answer under way; the next plan's first order does not take it."""

    def send(order: dict[str, Any]) -> None:
        link.take({"number": order["number"] - 1, "state": "late"})
        link.take({"number": order["number"], "state": "own"})

    link = HostLink(send)
    assert [link.exchange({"do": "step"})["state"] for _ in range(2)] == ["own", "own"]
