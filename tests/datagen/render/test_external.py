"""Programs that render through pipes: what they send is checked, and one that ends or is silent is replaced."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.render.external import mask_boxes
from nimbus.datagen.render.external_process import ExternalProgram, ProgramLostError
from tests.support.refusals import refusal

ANSWERS = """
import json, sys, time
for line in sys.stdin:
    what = json.loads(line)["what"]
    if what == "end":
        sys.exit("out of memory")
    if what == "sleep":
        time.sleep(60)
    if what == "alive":
        for _ in range(8):
            print(json.dumps({"type": "alive"}), flush=True)
            time.sleep(0.1)
    print({"words": "hello there", "list": "[1]", "error": '{"type": "error", "what": "no GPU"}'}.get(what,
          json.dumps({"type": "ready"})), flush=True)
"""


@pytest.fixture
def program():
    made = ExternalProgram([sys.executable, "-c", ANSWERS], patience=0.6)
    yield made
    made.close()


def ask(program: ExternalProgram, what: str, answer: str = "ready") -> dict[str, object]:
    return program.ask({"type": "test", "what": what}, answer=answer)


def test_answers_arrive_and_signs_of_life_extend_patience(program: ExternalProgram):
    assert ask(program, "fine") == {"type": "ready"}
    assert ask(program, "alive") == {"type": "ready"}


@pytest.mark.parametrize(("what", "reason"), [("end", "ended: out of memory"), ("sleep", "no line from it in 0.6 s")])
def test_programs_that_end_or_hang_are_lost(program: ExternalProgram, what: str, reason: str):
    with pytest.raises(ProgramLostError, match=reason):
        ask(program, what)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("words", "writes 'hello there' to its output"),
        ("list", "sends JSON that is no object"),
        ("error", "reports: no GPU"),
    ],
)
def test_wrong_answers_are_refused_in_one_line(program: ExternalProgram, what: str, message: str):
    assert message in refusal(ask, program, what)
    assert "answers 'ready' to test, expected 'frames'" in refusal(ask, program, "fine", "frames")


def test_arrays_are_read_from_the_folder_alone(program: ExternalProgram, tmp_path: Path):
    name = program.write("depth", np.ones((2, 3), dtype=np.float32))
    np.testing.assert_array_equal(program.read(name, (2, 3), np.float32), np.ones((2, 3)))
    assert "no file in the folder" in refusal(program.read, name, (2, 3), np.float32)  # it is read once
    np.save(tmp_path / "other.npy", np.zeros(3))
    for wrong in (str(tmp_path / "other.npy"), "../x.npy", 7, None):
        assert "no file in the folder" in refusal(program.read, wrong, (3,), np.float64)
    name = program.write("depth", np.ones((2, 3)))
    assert "as float64 (2, 3), expected float32 (2, 3)" in refusal(program.read, name, (2, 3), np.float32)


def test_programs_that_do_not_exist_are_named():
    with pytest.raises(InputError, match="'no-such-program' cannot be started"):
        ExternalProgram(["no-such-program"], patience=1.0)


def test_boxes_of_masks_are_tight():
    mask = np.zeros((1, 6, 8), dtype=np.uint8)
    mask[0, 2:4, 3:7] = 2
    boxes = mask_boxes(mask, 3)
    np.testing.assert_array_equal(boxes[0, 2], (3, 2, 7, 4))
    assert np.isnan(boxes[0, 1]).all()
