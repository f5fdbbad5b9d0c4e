"""PyAV's libraries read no settings of their folder in ``/tmp``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = "import os; from nimbus.datagen.files.av_library import av; print(os.environ.get('GNUTLS_SYSTEM_PRIORITY_FILE'))"


def imported(given: dict[str, str], seconds: float) -> str:
    unset = {name: value for name, value in os.environ.items() if not name.startswith("GNUTLS")}
    command = [sys.executable, "-P", "-c", CODE]
    return subprocess.check_output(command, env=unset | given, text=True, timeout=seconds).strip()


def test_other_programs_follow_the_settings_of_the_system():
    assert imported({}, 60) == "None"
    assert imported({"GNUTLS_SYSTEM_PRIORITY_FILE": "/dev/zero/none"}, 60) == "/dev/zero/none"


@pytest.mark.skipif(sys.platform != "linux", reason="the wheels of other systems have other libraries")
def test_the_libraries_read_the_file_that_the_variable_names(tmp_path: Path):
    """A pipe without a writer blocks their import, as one in ``/tmp`` would."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(subprocess.TimeoutExpired):
        imported({"GNUTLS_SYSTEM_PRIORITY_FILE": str(tmp_path / "pipe")}, 5)
