from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.runner.cluster.messages import MOST_BYTES, Details, request_of, to_line
from nimbus.runner.commands.status import command
from nimbus.runner.monitor import node_details
from nimbus.runner.monitor.node_details import NodeDetails, read_details, shorten
from nimbus.runner.monitor.progress import Progress
from nimbus.runner.monitor.status import ClusterStatus, Event, NodeStatus, Status, WorkerStatus

WORKER = WorkerStatus(number=1, seat=0, pid=4_000_000, role="renderer", phase="render", index=9**9, age=0.5, in_phase=9)
CELL = Status(task="drive", pid=2, workers=(replace(WORKER, resident=10**10),) * 900)


def test_a_large_status_fits_into_a_message() -> None:
    events = tuple(Event(number=number, text="x" * 5000) for number in range(100))
    details = Details(node="n1", status=shorten(replace(CELL, events=events)))
    line = to_line(details)
    assert len(line) < MOST_BYTES and request_of(line) == details


def test_nodes_that_left_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_details, "_INTERVAL", 0.0)
    details = NodeDetails(tmp_path)
    details.add("n1", shorten(CELL))
    details.write()
    assert read_details(tmp_path, "n1") == shorten(CELL) and read_details(tmp_path, "n2") is None
    details.remove("n1")
    details.write()
    assert read_details(tmp_path, "n1") is None


def test_the_command_shows_one_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(tmp_path, task="drive", target=8)
    progress.update(cluster=ClusterStatus(nodes=(NodeStatus(name="n1", host="h1", state="working", slots=2),)))
    progress.flush()
    details = NodeDetails(tmp_path)
    details.add("n1", shorten(CELL))
    details.write()
    assert command(tmp_path, node="n1") == 0
    out = capsys.readouterr().out
    assert "h1" in out and "renderer" in out and "and 84 more" in out
    with pytest.raises(InputError, match=r"no node 'n2'; one of n1"):
        command(tmp_path, node="n2")


def test_another_file_of_that_name_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text("[1]")
    with pytest.raises(InputError, match="not the file of a run"):
        read_details(tmp_path, "n1")
