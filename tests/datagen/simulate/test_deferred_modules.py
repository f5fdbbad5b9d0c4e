"""Deferred modules run at the first name that only they have."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nimbus.datagen.simulate.deferred_modules import defer_modules, defer_package


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a package whose parts write their names into a log when they run."""
    folder = tmp_path / "slow_package"
    (folder / "deep").mkdir(parents=True)
    files = {"__init__": "from . import first\nfrom .deep.second import VALUE\n", "first": "", "deep/__init__": ""}
    for name, text in (files | {"deep/second": "VALUE = 2\n", "deep/third": "from .second import VALUE\n"}).items():
        said = f"open({str(tmp_path / 'log')!r}, 'a').write({name!r} + ' ')\n"
        (folder / f"{name}.py").write_text(said + text + "NAME = __name__\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "log"
    for name in [name for name in sys.modules if name.partition(".")[0] == "slow_package"]:
        del sys.modules[name]


def test_an_unused_module_of_a_package_does_not_run(package: Path):
    defer_modules("slow_package", ("first", "deep.third", "missing"))
    imported = importlib.import_module("slow_package")
    assert package.read_text().split() == ["__init__", "deep/__init__", "deep/second"]
    assert imported.first.NAME == "slow_package.first"
    assert importlib.import_module("slow_package.deep.third").VALUE == 2
    assert package.read_text().split()[3:] == ["first", "deep/third"]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = imported.first.nothing


def test_names_of_a_part_do_not_run_the_package(package: Path):
    defer_package("slow_package", {"VALUE": "deep.second"})
    imported = importlib.import_module("slow_package")
    assert imported.VALUE == 2 and package.read_text().split() == ["deep/__init__", "deep/second"]
    assert imported.NAME == "slow_package" and imported.first.NAME == "slow_package.first"
    assert package.read_text().split()[2:] == ["__init__", "first"]


def test_all_names_of_a_deferred_module_are_imported_and_listed(package: Path):
    defer_modules("slow_package", ("first", "deep.third"))
    importlib.import_module("slow_package")
    exec("from slow_package.first import *", names := {})
    assert names["NAME"] == "slow_package.first"
    assert {"NAME", "VALUE"} <= set(dir(importlib.import_module("slow_package.deep.third")))


def test_a_module_that_fails_says_so_each_time(package: Path):
    (package.parent / "slow_package/first.py").write_text("import no_such_library")
    defer_modules("slow_package", ("first",))
    imported = importlib.import_module("slow_package")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_library"):
            _ = imported.first.NAME


def test_what_is_imported_already_stays(package: Path):
    imported = importlib.import_module("slow_package")
    before = imported.first
    defer_package("slow_package", {})
    defer_modules("slow_package", ("first",))
    assert importlib.import_module("slow_package") is imported and imported.first is before
    defer_package("no_such_package", {})
