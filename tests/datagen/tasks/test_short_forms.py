"""Short forms of a task file: presets of randomizers and cameras, repeated keys, and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import read
from nimbus.datagen.tasks.task import parse_task
from tests.support.refusals import refusal
from tests.support.task_text import TEXT

CAMERAS = TEXT[TEXT.index("cameras:") : TEXT.index("randomize:")]
VARIED = TEXT[TEXT.index("randomize:") : TEXT.index("instructions:")]
NAMES = "write a name (none, small, medium, large, pushes), or settings by randomizer, such as {mass: {}}"

WRONG = [
    (VARIED, "randomize: {preset: medium, mass: {}}", "randomize: a preset cannot be mixed with other settings"),
    (VARIED, "randomize: [medium, {mass: {}}]", f"randomize: neither a name nor a mapping (key: value); {NAMES}"),
    (VARIED, "randomize: 3", f"randomize: neither a name nor a mapping (key: value); {NAMES}"),
    (VARIED, "randomize:", f"randomize: neither a name nor a mapping (key: value); {NAMES}"),
    (CAMERAS, "cameras: front+", "cameras: a name is missing next to a + in 'front+'; write front"),
    (CAMERAS, "cameras: {mine: {preset: frnt}}", "cameras: unknown camera 'frnt'"),
    (CAMERAS, "cameras: {mine: {preset: {front: 1}}}", "cameras: unknown camera"),
    (CAMERAS, "cameras: +", "cameras: a name is missing next to a + in '+'; write front+wrist"),
    (
        CAMERAS,
        "cameras: [{position: [1, 0, 1]}]",
        "cameras: a list of cameras has names only, found {'position': (1, 0, 1)}",
    ),
    (CAMERAS, "cameras: [front, [wrist]]", "cameras: a list of cameras has names only, found ('wrist',)"),
    (CAMERAS, "cameras: [{}]", "cameras: a list of cameras has names only, found {}"),
    (VARIED, "randomize: {<<: {mass: {}}}", "task.yaml:19:13: randomize: '<<' is not supported; write out the keys"),
]


@pytest.mark.parametrize(("good", "bad", "line"), WRONG, ids=[bad for _, bad, _ in WRONG])
def test_a_short_form_that_is_none_says_what_would_do(good: str, bad: str, line: str) -> None:
    assert line in refusal(parse_task, TEXT.replace(good, f"{bad}\n"))


def test_a_text_in_another_encoding_says_how_to_save_it(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(TEXT, encoding="utf-16")
    with pytest.raises(InputError, match=r"task\.yaml: not a UTF-8 text: byte 0; save it as UTF-8"):
        read(path)
