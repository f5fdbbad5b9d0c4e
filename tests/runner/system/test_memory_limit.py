from __future__ import annotations

import subprocess
import sys

import pytest

from nimbus.datagen.errors import InputError
from nimbus.runner.commands import COMMANDS
from nimbus.runner.system import memory_limit
from nimbus.runner.system.memory_limit import READERS, limit_memory

_GREEDY = """
import sys
from nimbus.runner import cli
from nimbus.runner.commands import hash

def command():
    bytearray(2 * 10**9)

hash.command = command
sys.exit(cli.main(["hash"]))
"""


def test_readers_are_commands():
    assert set(COMMANDS) >= READERS


def test_a_greedy_reader_ends_in_one_line():
    environment = {"NIMBUS_MEMORY_LIMIT": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", _GREEDY], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("memory: more than 1.0 GB would be needed"), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "999999"])
def test_a_wrong_limit_is_refused(monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv(memory_limit.VARIABLE, text)
    with pytest.raises(InputError, match="NIMBUS_MEMORY_LIMIT"):
        limit_memory()
