"""Wordings in a task file: instructions, and sentences around them; they are refused if they give no instruction."""

from __future__ import annotations

import pytest

from nimbus.datagen.tasks.task import parse_task
from tests.support.refusals import refusal
from tests.support.task_text import changed

CAMERA = "  camera: {position: 5 cm}"
FRAMES = [
    ("{instruction[foo]}", "unknown field '{instruction[foo]}'"),
    ("{instruction:>999999999}", "unknown field '{instruction:>999999999}'"),
    ("{Instruction!r}", "unknown field '{Instruction!r}'"),
    ("{instruction} {block}", "unknown field '{block}'"),
    ("Do it", "'Do it' contains no instruction; write {instruction} for a lower-case start"),
    ("{instruction", "'{instruction' contains no instruction"),
]


@pytest.mark.parametrize(("frame", "line"), FRAMES, ids=[frame for frame, _ in FRAMES])
def test_a_sentence_that_cannot_hold_the_instruction_is_refused(frame: str, line: str) -> None:
    text = changed(CAMERA, f'  language: {{frames: ["Now {{instruction}}.", "{frame}"]}}')
    assert f"randomize.language.frames[1]: {line}" in refusal(parse_task, text)


def test_sentences_that_hold_the_instruction_are_accepted() -> None:
    assert parse_task(changed(CAMERA, '  language: {frames: ["{Instruction}.", "{{now}} {instruction}"]}'))


INSTRUCTIONS = [
    ("", "an empty wording; write the task of the robot in a sentence"),
    ("  ", "an empty wording"),
    ("Sort {items!r}.", "'{items!r}' is more than a name in braces; write {items}"),
    ("Sort {items:>9}.", "'{items:>9}' is more than a name in braces; write {items}"),
    ("Sort {itms}.", "unknown field '{itms}'; did you mean 'items'?"),
    ("Sort {items[0]}.", "unknown field '{items[0]}'; did you mean 'items'?"),
    ("Sort {items.", "malformed wording: "),
]


@pytest.mark.parametrize(("wording", "line"), INSTRUCTIONS, ids=[wording for wording, _ in INSTRUCTIONS])
def test_an_instruction_that_says_nothing_is_refused(wording: str, line: str) -> None:
    assert f"instructions[1]: {line}" in refusal(parse_task, changed('"Sort {items}."', f'"{wording}"'))
