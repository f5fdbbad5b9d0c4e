"""Filter of system calls: its program is well formed on each kind of machine."""

from __future__ import annotations

import pytest

from nimbus.datagen.files import system_calls
from nimbus.datagen.files.system_calls import _beginning, _end, _for_all, _for_isolated

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
