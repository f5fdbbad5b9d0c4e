"""Filter of system calls: its program is well formed on each kind of machine."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from nimbus.datagen.files import system_calls
from nimbus.datagen.files.system_calls import _beginning, _end, _for_all, _for_isolated, has_filters

_JUMPS = {system_calls._IF_EQUAL, system_calls._IF_AT_LEAST, system_calls._IF_ANY_BIT}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("sockets", [None, (), (1, 16)])
def test_jumps_lead_forward_into_the_program(
    machine: str, sockets: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
):
    """The kernel would refuse the program otherwise, with the answer of a kernel that has no filters."""
    monkeypatch.setattr("platform.machine", lambda: machine)
    program = [*_beginning(), *_for_all(sockets), *_for_isolated(), _end()]
    for place, one in enumerate(program):
        for jump in (one.if_true, one.if_false):
            assert 0 <= jump < 256 and place + 1 + jump < len(program) or one.code not in _JUMPS
    assert len(program) < 4096 and program[-1].code == system_calls._RETURN


@pytest.mark.skipif(not Path("/proc/sys/kernel").is_dir(), reason="this system does not describe its kernel")
def test_filters_are_found_where_the_kernel_has_them(monkeypatch: pytest.MonkeyPatch):
    known, before = platform.machine() in system_calls._MACHINES, filter_state()
    has_filters.cache_clear()
    assert has_filters() == (known and Path("/proc/sys/kernel/seccomp/actions_avail").exists())
    assert filter_state() == before  # asking sets no filter
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    has_filters.cache_clear()
    assert not has_filters()
    has_filters.cache_clear()


def filter_state() -> list[str]:
    return [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Seccomp")]
