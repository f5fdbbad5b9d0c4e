"""A head's process that cannot start, or whose nodes cannot be placed, still gives the run a result."""

from __future__ import annotations

import sys
from pathlib import Path

from nimbus.runner.cluster.job import HeadEnd
from nimbus.runner.cluster.on_ray.head_end import await_end
from nimbus.runner.cluster.on_ray.kept_process import KeptProcess

PATIENCE = 60.0
END = """print('{"state": "done"}')"""


def process(log: Path, program: str) -> KeptProcess:
    found = KeptProcess([sys.executable, "-c", program], log, is_over=lambda code, output: bool(output))
    found.start()
    return found


def nothing() -> None:
    """Place no node."""


def test_result_is_the_last_line(tmp_path: Path):
    head = process(tmp_path / "log", END)
    assert await_end(head, nothing, interval=PATIENCE) == HeadEnd(state="done")


def test_head_that_cannot_start_has_failed(tmp_path: Path):
    """The command once followed such a run forever."""
    head = process(tmp_path / "missing" / "log", END)
    assert head.over.wait(PATIENCE)
    end = await_end(head, nothing, interval=PATIENCE)
    assert end.state == "failed" and "cannot be kept running: [Errno 2]" in end.line


def test_unexpected_error_ends_the_run(tmp_path: Path):
    """The thread that places nodes once ended without a result."""

    def place() -> None:
        raise OSError("too many open files")

    head = process(tmp_path / "log", "import time; time.sleep(600)")
    end = await_end(head, place, interval=0.0)
    assert end.state == "failed" and "too many open files" in end.line
    assert head.over.wait(PATIENCE) and not head.pid
