from __future__ import annotations

from pathlib import Path

import pytest

from tools import lint_rules


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(text: str) -> Path:
        path = tmp_path / "made.py"
        path.write_text(text)
        monkeypatch.setattr(lint_rules, "modules", lambda: {"nimbus.skills.made": path})
        monkeypatch.setattr(lint_rules, "other_sources", lambda: ())
        return path

    return write


def test_clause_as_docstring_is_found(write):
    write('"""What it is."""\nclass Made:\n    """A thing."""\n')
    assert [line for _, line, _ in lint_rules.check_openings()] == [1]


def test_component_as_person_is_found(write):
    write('"""A worker that tells nobody."""\n')
    assert [word for _, _, word in lint_rules.check_words()] == ["tells", "nobody"]


def test_class_name_used_twice_is_found(write):
    write("class Part: ...\nclass Whole:\n    class Part: ...\n")
    assert [name for _, _, name in lint_rules.check_class_names()] == ["Part"]


def test_untyped_seam_is_found(write):
    write("from typing import Any\ndef run(arm: Any) -> None: ...\ndef _run(arm: Any) -> None: ...\n")
    assert [name for _, _, name in lint_rules.check_seams()] == ["run"]


def test_error_without_fix_is_found(write):
    write("InputError('a')\nInputError('b', instead='c')\n")
    assert [line for _, line, _ in lint_rules.check_fixes()] == [1]


def test_grown_count_fails(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    write('"""What it is."""\n')
    monkeypatch.setattr(lint_rules, "BASELINE", tmp_path / "baseline.json")
    monkeypatch.setattr(lint_rules, "relative", lambda path: "skills/made.py")
    monkeypatch.setattr("sys.argv", ["lint_rules", "--update"])
    assert lint_rules.main() == 0
    write('"""What it is."""\nclass Made:\n    """How it is made."""\n')
    lint_rules.parse.cache_clear()
    assert lint_rules.main() == 1
    assert "docstring-opening: 2 in skills, at most 1" in capsys.readouterr().out


def test_what_beyond_its_rate_is_found(write, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lint_rules, "relative", lambda path: "skills/made.py")
    write('"""Name of what it is."""\ndef run():\n    """Do what it asks."""\n')
    assert [line for _, line, _ in lint_rules.check_what()] == [3]


def test_argument_name_is_no_prose(write):
    write('def run(tell):\n    """Run.\n\n    Args:\n        tell: Called with the result.\n    """\n')
    assert list(lint_rules.check_words()) == []
