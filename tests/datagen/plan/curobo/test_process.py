"""CuRobo's process and the messages to it, and errors without a usable cuRobo."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from nimbus.datagen.errors import InputError
from nimbus.datagen.plan.curobo import wire
from nimbus.datagen.plan.curobo.process import PYTHON, CuroboProcess, check_curobo
from tests.support import ROOT
from tools.contract.names import Contract

from .conftest import MakePython

HEADERS = st.dictionaries(st.text(max_size=5), st.one_of(st.integers(-9, 9), st.text(max_size=9), st.booleans()))
ARRAYS = st.dictionaries(
    st.text(min_size=1, max_size=5),
    st.one_of(
        arrays.arrays(np.float64, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
        arrays.arrays(np.int64, arrays.array_shapes(max_side=4)),
        arrays.arrays(np.bool_, arrays.array_shapes(max_side=4)),
    ),
    max_size=3,
)


@settings(max_examples=30)
@given(HEADERS, ARRAYS)
def test_what_is_sent_is_received(header: dict[str, object], parts: wire.Arrays) -> None:
    one, other = socket.socketpair()
    with one, other:
        sender = threading.Thread(target=wire.send, args=(one, header, parts))
        sender.start()
        received, found = wire.receive(other)
        sender.join()
    assert received == header and set(found) == set(parts)
    for name, part in parts.items():
        assert found[name].dtype == part.dtype and found[name].shape == part.shape
        np.testing.assert_array_equal(found[name], part)


@settings(max_examples=60)
@given(st.binary(max_size=60))
def test_what_is_no_message_is_said_to_be_none(data: bytes) -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(data)
        one.close()
        with pytest.raises((wire.MalformedMessageError, EOFError)):
            wire.receive(other)


def test_objects_are_not_sent() -> None:
    one, other = socket.socketpair()
    with one, other, pytest.raises(TypeError, match="not an array of numbers"):
        wire.send(one, {}, {"a": np.array([object()])})


def refusal(monkeypatch: pytest.MonkeyPatch, python: Path | str) -> str:
    monkeypatch.setenv(PYTHON, str(python))
    with pytest.raises(InputError) as caught:
        check_curobo()
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2
    return str(caught.value)


def with_packages(make_python: MakePython, folder: Path, *files: str) -> Path:
    """Return an interpreter that finds these files, and no other files of cuRobo or PyTorch."""
    for name in files:
        path = folder / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("__version__ = '2.9'\nclass cuda:\n    is_available = staticmethod(lambda: False)\n")
    return make_python(f'PYTHONPATH="{folder}/site" exec "{sys.executable}" "$@"')


def test_no_curobo_at_all(make_python: MakePython, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = refusal(monkeypatch, with_packages(make_python, tmp_path))
    assert said.startswith("--planner: there is no cuRobo in ") and PYTHON in said and "--planner ompl" in said
    # The package of that name on the package index is empty.
    said = refusal(monkeypatch, with_packages(make_python, tmp_path, "curobo/__init__.py"))
    assert "there is no cuRobo in " in said


def test_the_curobo_of_version_1(make_python: MakePython, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = [f"curobo/{part}__init__.py" for part in ("", "wrap/", "wrap/reacher/")]
    python = with_packages(make_python, tmp_path, *files, "curobo/wrap/reacher/motion_gen.py")
    assert "is version 1, which is not supported" in refusal(monkeypatch, python)


@pytest.mark.parametrize(("torch", "said"), [((), "no PyTorch beside"), (("torch.py",), "finds no CUDA device")])
def test_a_curobo_that_cannot_run(
    make_python: MakePython, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, torch: tuple[str, ...], said: str
) -> None:
    python = with_packages(make_python, tmp_path, "curobo/__init__.py", "curobo/motion_planner.py", *torch)
    assert said in refusal(monkeypatch, python)


def test_an_interpreter_that_is_none(monkeypatch: pytest.MonkeyPatch, make_python: MakePython) -> None:
    assert "No such file" in refusal(monkeypatch, "/no/python")
    assert "cannot be checked for cuRobo: oh no" in refusal(monkeypatch, make_python("echo oh no; exit 3"))


def test_an_instance_and_its_curobo_share_a_gpu(monkeypatch: pytest.MonkeyPatch, make_python: MakePython) -> None:
    monkeypatch.setenv("NIMBUS_GPU", "GPU-b")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert "cuRobo: sees GPU-b" in refusal(monkeypatch, make_python("echo sees $CUDA_VISIBLE_DEVICES; exit 3"))


@pytest.mark.usefixtures("curobo")
def test_an_error_in_the_process_is_shown_and_the_next_query_is_answered() -> None:
    process = CuroboProcess()
    assert process.device == "a stand-in"
    for _ in range(2):
        with pytest.raises(RuntimeError, match="KeyError: 'robot'"):
            process.ask({"tool": "a"}, {})
    assert process.is_alive
    process.close()
    assert not process.is_alive


@pytest.mark.usefixtures("curobo")
def test_an_interrupted_query_shows_where_the_process_was() -> None:
    process = CuroboProcess()
    process.interrupt()
    with pytest.raises(RuntimeError, match=r"(?s)ended: .*most recent call first.*server.py"):
        process.ask({}, {})


def test_version_2_is_told_by_a_module_that_only_it_has() -> None:
    contract = Contract.load()
    assert contract.has_module("curobo.motion_planner")
    assert not contract.has_module("curobo.wrap.reacher.motion_gen")


def test_the_command_line_says_in_one_line_that_there_is_no_curobo(
    make_python: MakePython, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PYTHON, str(with_packages(make_python, tmp_path)))
    runner = ROOT / "runner/runner.py"
    command = [
        sys.executable,
        str(runner),
        "--task",
        "sort_trash",
        "--planner",
        "curobo",
        "--out",
        str(tmp_path / "out"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2 and not ended.stdout and not (tmp_path / "out").exists()
    assert ended.stderr.startswith("--planner: there is no cuRobo in ") and ended.stderr.count("\n") == 1
