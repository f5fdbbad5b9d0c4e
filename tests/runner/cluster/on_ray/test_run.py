"""The child program that joins a Ray cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nimbus.runner.cluster.on_ray import run
from nimbus.runner.cluster.on_ray.request import RayOrder

REPORT = 'import os, sys; sys.stdin.read(); print(\'{"end": {"state": "done", "line": "%s"}}\' % os.getcwd())'


def test_child_does_not_run_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ray's workers would import modules from it, and it may be a dataset of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "module_command", lambda _: [sys.executable, "-P", "-c", REPORT])
    order = RayOrder(address="auto", name="n", job="", version="1", platform="p")
    assert run._follow(order, tmp_path, lambda: 0).line == os.path.abspath(os.sep)
