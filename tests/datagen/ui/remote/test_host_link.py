"""Orders to the program with the open stage, and their answers."""

from __future__ import annotations

from typing import Any

import pytest

from nimbus.datagen.ui.remote.host_link import HostLink, StoppedByUser


def test_late_answers_are_dropped():
    """A stopped plan leaves an answer in transit, which the next plan's first order must not accept."""

    def send(order: dict[str, Any]) -> None:
        link.take({"number": order["number"] - 1, "state": "late"})
        link.take({"number": order["number"], "state": "own"})

    link = HostLink(send)
    assert [link.exchange({"do": "step"})["state"] for _ in range(2)] == ["own", "own"]


def test_stop_ends_a_plan_that_waits_for_its_turn():
    """A plan waits behind other work of the editor; the user stops it before it begins."""
    orders: list[dict[str, Any]] = []
    link = HostLink(orders.append)
    requested = link.stop_count
    link.stop()
    link.begin(requested)
    with pytest.raises(StoppedByUser):
        link.exchange({"do": "open"})
    assert link.is_stopped and orders == []
    link.begin(link.stop_count)
    assert not link.is_stopped, "the next request begins anew"
