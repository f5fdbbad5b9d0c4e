"""Orders to the program with the open stage, and their answers."""

from __future__ import annotations

from typing import Any

from nimbus.datagen.ui.remote.host_link import HostLink


def test_late_answers_are_dropped():
    """A stopped plan leaves an answer in transit, which the next plan's first order must not accept."""

    def send(order: dict[str, Any]) -> None:
        link.take({"number": order["number"] - 1, "state": "late"})
        link.take({"number": order["number"], "state": "own"})

    link = HostLink(send)
    assert [link.exchange({"do": "step"})["state"] for _ in range(2)] == ["own", "own"]
