from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nimbus.datagen.ui.browser.studio import QUICK, SHARP, has_gpu, page_url


def test_the_address_says_how_sharp_the_scene_is_drawn():
    assert page_url("http://127.0.0.1:8080", SHARP) == "http://127.0.0.1:8080"
    assert page_url("http://127.0.0.1:8080", QUICK) == "http://127.0.0.1:8080/?fixedDpr=0.4"


def test_a_gpu_is_told_by_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    assert not has_gpu(tmp_path)
    (tmp_path / "dri").mkdir()
    assert has_gpu(tmp_path)


def test_browser_beyond_ssh_has_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    assert has_gpu(tmp_path)
