"""Text from files in the page, where viser interprets expressions and tags in Markdown."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.ui.browser.markdown import escape
from nimbus.datagen.ui.browser.run_tab import dashboard

ATTACK = "{alert(1)} <img src=x onerror=alert(1)> ![x](http://evil.example) [x](javascript:alert(1)) `{1}` \x1b[2J"


@pytest.mark.parametrize("letter", "{}<>[]`*_!&\\")
def test_marks_are_escaped(letter: str):
    assert escape(f"a{letter}b") == f"a\\{letter}b"


@given(st.text())
def test_every_mark_has_its_backslash(text: str):
    """Without its pairs of a backslash and a character, a text contains no Markdown characters."""
    assert not re.search(r"[{}<>\[\]`*_\\]", re.sub(r"\\.", "", escape(text)))


def test_status_of_others_is_text(tmp_path: Path):
    status = {"counts": {"load": 1}, "failures": {ATTACK: 1}, "workers": [{"seat": 1, "role": ATTACK}]}
    (tmp_path / "status.json").write_text(json.dumps(status))
    shown = re.sub(r"\\.", "", dashboard(tmp_path))
    assert "alert" in shown and not re.search(r"[{}<>\[\]`\x1b]", shown)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", '{"cpu_times": {"load": "x"}}', '{"workers": [1]}', "\udcff", None]
)
def test_status_that_is_none_shows_nothing(text: str | None, tmp_path: Path):
    """A page that shows a run neither stops at a pipe nor waits for it."""
    path = tmp_path / "status.json"
    if text is None:
        os.mkfifo(path)
    else:
        path.write_text(text, errors="surrogateescape")
    assert dashboard(tmp_path) == ""
