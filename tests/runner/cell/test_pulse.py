"""The thread that tells a machine that stood still from a loop that waited."""

from __future__ import annotations

import threading
import time

from nimbus.runner.cell.pulse import Pulse


def test_it_beats_while_the_main_thread_waits_and_can_be_stopped_for_a_fork():
    beats: list[float] = []
    threads = threading.active_count()
    pulse = Pulse(0.001, beats.append)
    pulse.start()
    pulse.start()
    while len(beats) < 5:
        time.sleep(0.01)
    assert beats == sorted(beats)
    pulse.stop()
    pulse.stop()
    told = len(beats)
    assert threading.active_count() == threads
    pulse.start()
    while len(beats) == told:
        time.sleep(0.01)
    pulse.stop()
