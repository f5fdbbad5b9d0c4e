"""PyTorch compiles into a folder of this user; a package that states the variable stands for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.plan.curobo.process import _environment
from tests.support import ROOT

VARIABLE, HEADERS = "TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"


def imported(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Import PyTorch in a folder; the output is the values of the variables at this time."""
    (folder / "packages").mkdir()
    (folder / "packages" / "torch.py").write_text(
        f"import os\nprint(os.environ['{VARIABLE}'], os.environ['{HEADERS}'])\n"
    )
    env = {name: value for name, value in os.environ.items() if name not in (VARIABLE, HEADERS)}
    env |= {"NIMBUS_CACHE": str(folder / "cache"), **more}
    env["PYTHONPATH"] = os.pathsep.join((str(folder / "packages"), str(ROOT / "exts" / "nimbus.datagen")))
    command = [sys.executable, "-P", "-c", "import nimbus.datagen.geometry.torch_library"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("named", ["", None])
def test_compiled_code_is_in_a_private_folder_of_the_cache(named: str | None, tmp_path: Path):
    done = imported(tmp_path, **({} if named is None else {VARIABLE: named}))
    assert done.stdout.split() == [str(tmp_path / "cache" / "torch"), "0"], done.stderr
    assert (tmp_path / "cache" / "torch").stat().st_mode & 0o777 == 0o700


def test_settings_of_the_user_are_kept(tmp_path: Path):
    done = imported(tmp_path, **{VARIABLE: str(tmp_path / "mine"), HEADERS: "1"})
    assert done.stdout.split() == [str(tmp_path / "mine"), "1"] and not (tmp_path / "cache").exists()


def test_a_relative_folder_is_refused(tmp_path: Path):
    done = imported(tmp_path, **{VARIABLE: "compiled"})
    assert done.returncode and f"{VARIABLE}: 'compiled' is a relative path" in done.stderr and not done.stdout


def test_the_process_of_curobo_gets_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    assert _environment("/usr/bin/python3")[VARIABLE] == str(tmp_path / "torch")
