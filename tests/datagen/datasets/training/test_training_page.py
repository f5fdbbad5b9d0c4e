"""Code of docs/training.md, run unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nimbus.datagen.datasets.training.samples import Samples, merge_states
from nimbus.runner.cli import main
from tests.support import ROOT
from tests.support.synthetic import make_rendered, write_dataset

PAGE = (ROOT / "docs" / "training.md").read_text()


def test_the_pages_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(tmp_path / "out" / "sort_trash", [make_rendered(row, steps=60) for row in range(4)])
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^nimbus (export .*shards.*)$", PAGE, re.MULTILINE)
    assert main(command.split()) == 0
    first, torch, view, shards = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {"folder": Path("out/sort_trash_shards")}
    exec(first, names)
    assert names["sample"]["index"] in range(240), "the last one of the loop"  # pyright: ignore[reportIndexIssue]
    assert "SignalView(actions=" in view
    exec(shards, names)
    assert len(names["reader"]) == 240  # pyright: ignore[reportArgumentType]
    assert "torch_dataset(Samples(reader, rank=rank, ranks=ranks))" in torch
    for name in ("state_dict", "load_state_dict", "wait_seconds", "set_epoch"):
        assert f"{name}" in PAGE and hasattr(Samples(names["reader"]), name)  # pyright: ignore[reportArgumentType]
    assert merge_states.__name__ in PAGE
