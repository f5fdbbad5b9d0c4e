"""Paths in environment variables do not begin in the current folder, which may be of somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.files.variables import variable_path, variable_program
from nimbus.datagen.plan.curobo.process import PYTHON, CuroboProcess
from nimbus.datagen.render.blender import VARIABLE as BLENDER
from nimbus.datagen.render.blender import blender_python
from nimbus.datagen.simulate.isaac_location import VARIABLE as ISAAC_SIM
from nimbus.datagen.simulate.isaac_location import locate_isaac_python
from nimbus.datagen.store.remote.site import SITE_FILE, site_file
from nimbus.datagen.ui.runs.launch import find_interpreter
from tests.support.refusals import refusal


def test_absolute_paths_and_names_of_programs_are_taken() -> None:
    assert variable_path("X", "~/a") == Path.home() / "a" and variable_path("X", "/a") == Path("/a")
    assert variable_program("X", "python3") == "python3" and variable_program("X", "/bin/sh") == "/bin/sh"
    assert "no user '~nobody_has_this_name'" in refusal(variable_path, "X", "~nobody_has_this_name/x")


@pytest.mark.parametrize(
    ("variable", "reader"),
    [
        (PYTHON, CuroboProcess),
        (BLENDER, blender_python),
        (ISAAC_SIM, lambda: locate_isaac_python({ISAAC_SIM: "bin/python"})),
        (SITE_FILE, site_file),
        ("NIMBUS_PYTHON", find_interpreter),
    ],
)
def test_relative_paths_are_refused(variable: str, reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "bin/python")
    Path("bin").mkdir()
    Path("bin/python").write_text("#!/bin/sh\ntouch started\n")
    Path("bin/python").chmod(0o755)
    error = refusal(reader)
    assert error.startswith(f"{variable}: 'bin/python' is a relative path") and "write an absolute path" in error
    assert not Path("started").exists()
