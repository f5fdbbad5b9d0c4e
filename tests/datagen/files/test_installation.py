"""Commands that messages suggest to install Nimbus."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.files import installation, own_files
from nimbus.datagen.files.installation import add_extra, checkout_folder
from tests.support import ROOT


def checkout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a checkout that this Nimbus is part of."""
    package = folder / "exts" / "nimbus.datagen"
    package.mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt"):
        (folder / name).touch()
    monkeypatch.setattr(installation, "PACKAGE_FOLDER", package)
    return folder


def test_an_extra_is_installed_from_this_checkout():
    pip = f"{sys.executable} -P -m pip install -e"
    assert checkout_folder() == ROOT
    assert add_extra("store") == f"type: {pip} '{ROOT}[store]' -c {ROOT}/constraints.txt"


def test_a_suggested_command_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = checkout(tmp_path / "a b'; curl x | sh #", monkeypatch)
    words = shlex.split(add_extra("gym").removeprefix("type: "))
    assert words[-4:] == ["-e", f"{folder}[gym]", "-c", f"{folder}/constraints.txt"]


def test_an_installed_wheel_names_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(installation, "PACKAGE_FOLDER", tmp_path / "lib/python3.11/site-packages")
    assert checkout_folder() is None
    pip = f"{sys.executable} -P -m pip install -e"
    assert add_extra("store") == f"in a checkout of Nimbus, type: {pip} '.[store]' -c constraints.txt"


@pytest.mark.parametrize("name", ["", "pyproject.toml", "constraints.txt"])
def test_a_checkout_with_files_of_others_is_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An extension in ``/tmp/exts``: another user can write the ``pyproject.toml`` above it, whose code pip runs."""
    folder = checkout(tmp_path, monkeypatch)
    assert checkout_folder() == folder
    monkeypatch.setattr(installation, "is_own", lambda path: path != folder / name)
    assert checkout_folder() is None


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only the superuser gives files away")
def test_files_of_others_are_recognized_by_their_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = checkout(tmp_path, monkeypatch)
    os.chown(folder / "pyproject.toml", 12345, -1)
    monkeypatch.setattr(own_files.os, "getuid", lambda: 1000)
    assert checkout_folder() is None


_WITHOUT_EXTRAS = """
import importlib.util, sys
from pathlib import Path
from nimbus.datagen.errors import InputError
from nimbus.datagen.files import installation

if sys.argv[1:]:
    installation.PACKAGE_FOLDER = Path(sys.argv[1])
for package in ("gymnasium", "viser", "websockets"):
    sys.modules[package] = None
importlib.util.find_spec = lambda _: None

from nimbus.datagen.policies.open_policy import open_policy
from nimbus.datagen.ui.browser.studio import load_viser
from nimbus.runner.cli import main
from nimbus.runner.cluster.cluster_address import parse_cluster
from nimbus.runner.cluster.on_ray.run import check_ray

for attempt in (
    load_viser,
    lambda: check_ray(parse_cluster("auto")),
    lambda: open_policy("ws://127.0.0.1:1"),
    lambda: __import__("nimbus.gym"),
):
    try:
        attempt()
    except (InputError, ImportError) as error:
        print(error, file=sys.stderr)
sys.exit(main(["serve-policy", "hold"]))
"""


@pytest.mark.parametrize("is_checkout", [True, False])
def test_no_message_names_nimbus_for_an_index(is_checkout: bool, tmp_path: Path):
    words = [sys.executable, "-P", "-c", _WITHOUT_EXTRAS, *([] if is_checkout else [str(tmp_path)])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    messages = done.stderr.splitlines()
    assert done.returncode == 2 and len(messages) == 5, done.stderr
    for message in messages:
        assert f"type: {sys.executable} -P -m pip install -e '{ROOT if is_checkout else '.'}[" in message
        assert "nimbus-datagen" not in message
