from typing import Annotated, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from nimbus.datagen.errors import InputError
from nimbus.datagen.files import strict_yaml
from nimbus.datagen.files.quantities import Metres, Radians, Range, Ratio
from nimbus.datagen.files.strict_yaml import StrictModel, dotted, load_text, parse
from tests.support.refusals import refusal


class Box(StrictModel):
    on: str = Field(description="The surface it stands on.")
    size: tuple[Annotated[Metres, Field(gt=0)], Metres] = (1.0, 1.0)


class Round(StrictModel):
    shape: Literal["round"]
    radius: Metres


class Flat(StrictModel):
    shape: Literal["flat"]
    width: Metres


class Example(StrictModel):
    robot: str
    boxes: dict[str, Box] = {}
    count: int | Range[int] = 1
    reach: Range[Metres] = (0.0, 1.0)
    yaw: Literal["any", "none"] | Radians = "any"
    share: Annotated[Ratio, Field(ge=0, le=1)] = 0.3
    enabled: bool = True
    step: Metres = Field(0.1, gt=0, le=1)
    parts: Annotated[tuple[Annotated[Round | Flat, Field(discriminator="shape")], ...], Field(min_length=1)] | None = (
        None
    )


def complaint(text: str) -> str:
    return refusal(load_text, text, "f.yaml", Example)


def test_numbers_units_and_ranges_become_si_values():
    text = "robot: a\nreach: [5 cm, 30 mm + 0]".replace("30 mm + 0", "1e-1 m") + "\nyaw: 180 deg\nshare: 25 %\n"
    example = load_text(text, "f.yaml", Example)
    assert example.reach == pytest.approx((0.05, 0.1))
    assert example.yaw == pytest.approx(3.14159265)
    assert example.share == 0.25


def test_one_value_stands_for_both_ends_of_a_range():
    assert load_text("{robot: a, reach: 5 cm}", "f.yaml", Example).reach == (0.05, 0.05)


def test_words_that_older_yaml_took_for_booleans_and_times_stay_text():
    example = load_text("robot: yes\nboxes: {off: {on: 12:30}}", "f.yaml", Example)
    assert (example.robot, example.boxes["off"].on) == ("yes", "12:30")


def test_aliases_repeat_a_value():
    assert load_text("robot: &name ur5\nboxes: {a: {on: *name}}", "f.yaml", Example).boxes["a"].on == "ur5"


MISTAKES = [
    ("robot: a\nrobo: b", "f.yaml:2:1: robo: unknown key 'robo'; did you mean 'robot'? known: "),
    ("robott: a", "f.yaml:1:1: robott: unknown key 'robott'; did you mean 'robot'?"),
    ("count: 2", "f.yaml:1:1: 'robot' is missing; add 'robot: …'"),
    ("robot: a\nboxes: {x: {}}", "f.yaml:2:12: boxes.x: 'on' is missing; add 'on: …' (The surface it stands on)"),
    ("robot: 3", "f.yaml:1:8: robot: expected text, found 3"),
    ("robot: a\nenabled: yes", "f.yaml:2:10: enabled: expected true or false, found 'yes'"),
    ("robot: a\nboxes: 3", "f.yaml:2:8: boxes: expected a mapping (key: value), found 3"),
    ("robot: a\nboxes: {x: {on: t, sise: 1}}", "f.yaml:2:20: boxes.x.sise: unknown key 'sise'; did you mean 'size'?"),
    ("robot: a\nboxes: {x: {on: t, size: [1]}}", "f.yaml:2:26: boxes.x.size: expected 2 entries, found [1] (1 given)"),
    ("robot: a\nboxes: {x: {on: t, size: [0, 1]}}", "f.yaml:2:27: boxes.x.size[0]: expected more than 0 m, found 0"),
    ("robot: a\nboxes: {x: {on: t, size: [1, 2, 3]}}", "boxes.x.size: expected at most 2 entries, found [1, 2, 3] (3"),
    ("robot: a\ncount: [4, 2]", "f.yaml:2:8: count: the range is reversed: 4 is above 2; write [2, 4]"),
    ("robot: a\nreach: [4 cm]", "f.yaml:2:8: reach: expected 2 entries, found ['4 cm'] (1 given)"),
    ("robot: a\ncount: [4, x]", "f.yaml:2:12: count[1]: expected a whole number, found 'x'"),
    ("robot: a\ncount: 2.5", "f.yaml:2:8: count: expected a whole number, found 2.5"),
    (
        "robot: a\nreach: [3 kg, 4]",
        "f.yaml:2:9: reach[0]: expected a length such as 0.05 or '5 cm' (units: m, cm, mm), ",
    ),
    ("robot: a\nyaw: ani", "f.yaml:2:6: yaw: expected 'any' or 'none' or an angle such as 0.5 or '30 deg'"),
    ("robot: a\nyaw: ani", "found 'ani'; did you mean 'any'?"),
    ("robot: a\nshare: 1.5", "f.yaml:2:8: share: expected at most 1, found 1.5"),
    (
        f"robot: a\nstep: {'9' * 5000}",
        "f.yaml:2:7: step: a whole number of 5000 digits is too long: '99999999999999999999…'",
    ),
    ("robot: a\nstep: 1e999", "f.yaml:2:7: step: expected a finite number, found inf"),
    ("robot: a\nstep: !!int x", "f.yaml:2:7: step: not a valid int: 'x'"),
    ("robot: a\nstep: -5 cm", "f.yaml:2:7: step: expected more than 0 cm, found '-5 cm'"),
    ("robot: a\nstep: 5 m", "f.yaml:2:7: step: expected at most 1 m, found '5 m'"),
    ("robot: a\nstep: 5e3 mm", "f.yaml:2:7: step: expected at most 1000 mm, found '5e3 mm'"),
    ("robot: a\nshare: 150 %", "f.yaml:2:8: share: expected at most 100 %, found '150 %'"),
    (f"robot: a\nboxes: {{{'x' * 101}: {{on: t}}}}", "f.yaml:2:9: boxes: a key of 101 letters is too long: 'xxx"),
    ("robot: a\nstep: 2", "f.yaml:2:7: step: expected at most 1 m, found 2; did you mean '2 cm'?"),
    ("robot: a\nshare: .nan", "f.yaml:2:8: share: expected a finite number, found nan"),
    ("robot: a\nshare: true", "f.yaml:2:8: share: expected a ratio"),
    ("robot: a\nparts: [{radius: 1}]", "f.yaml:2:9: parts[0]: expected a mapping with 'shape', found {radius: …}"),
    ("robot: a\nparts: [{shape: round, width: 1}]", "parts[0].width: unknown key 'width'; known: radius, shape"),
    ("robot: a\nparts: []", "f.yaml:2:8: parts: expected at least 1 entry, found []"),
    ("robot: a\nparts: [{shape: roundd}]", "parts[0].shape: unknown shape 'roundd'; did you mean 'round'?"),
    ("robot: a\nrobot: b", "f.yaml:2:1: robot: key 'robot' is given twice, first in line 1"),
    ("robot: a\nboxes: {x: {on: t}, x: {on: t}}", "f.yaml:2:21: boxes.x: key 'x' is given twice, first in line 2"),
    ("robot: [a", "malformed YAML: while parsing a flow sequence"),
    ("boxes: {x: {on: a[0]}}", "f.yaml:1:18: malformed YAML: while parsing a flow mapping, expected ',' or '}'"),
    ("boxes: {x: {on: a[0]}}", "; close the bracket, or put text with brackets in quotes"),
    ("robot: a\n\tcount: 2", "f.yaml:2:1: malformed YAML: "),
    ("robot: a: b", "f.yaml:1:9: malformed YAML: mapping values are not allowed here"),
    ("robot: a\n---\nrobot: b", "f.yaml:2:1: malformed YAML: expected a single document"),
    ("robot: a\x07", "f.yaml:1:9: malformed YAML: a character that YAML forbids"),
    ("robot: !!python/name:os.system x", "f.yaml:1:8: robot: tag 'tag:yaml.org,2002:python/name:os.system' is not"),
    ("? [a, b]\n: c", "f.yaml:1:3: a key must be a name"),
    ("robot: *nobody", "f.yaml:1:8: malformed YAML: found undefined alias 'nobody'"),
    ("robot: &a [*a]", "too large or nested too deeply"),
    ("", "f.yaml:1:1: the file is empty"),
    ("- 1", "f.yaml:1:1: expected a mapping (key: value), found [1]"),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_a_mistake_is_one_line_with_its_place_and_what_to_write(text: str, expected: str):
    assert expected in complaint(text)


def test_the_first_mistake_in_the_file_is_the_one_told():
    assert complaint("robot: 1\ncount: x").startswith("f.yaml:1:8")
    assert complaint("count: x\nrobot: 1").startswith("f.yaml:1:8: count")


def test_aliases_cannot_blow_a_file_up():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    with pytest.raises(InputError, match="too large"):
        parse("\n".join(lines), "bomb.yaml")


def test_deep_nesting_is_refused_without_a_traceback():
    assert "nested too deeply" in complaint("robot: " + "[" * 5000)


def test_unreadable_files_are_one_line(tmp_path):
    """The strict loader, which only makes plain values, refuses these files."""
    with pytest.raises(InputError, match="no such file"):
        strict_yaml.load(tmp_path / "none.yaml", Example)
    with pytest.raises(InputError, match="is a directory"):
        strict_yaml.load(tmp_path, Example)
    (tmp_path / "latin.yaml").write_bytes(b"robot: \xe9")
    with pytest.raises(InputError, match="not a UTF-8 text: byte 7"):
        strict_yaml.load(tmp_path / "latin.yaml", Example)
    (tmp_path / "huge.yaml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        strict_yaml.load(tmp_path / "huge.yaml", Example)


@pytest.mark.parametrize("form", ["{}", "{}: 1", "robot: *{}", "robot: !{} x", "robot: x\nboxes: [{}]", "step: {}"])
def test_no_message_pours_out_what_a_file_holds(form: str):
    assert len(complaint(form.format("rubbish" * 3000))) < 600


names = st.text("abcdefgh_", min_size=1, max_size=6)
scalars = (
    st.integers(-(10**12), 10**12)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False)
    | st.text("ab:- ", max_size=6)
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=15
)


def tupled(value):
    if isinstance(value, list):
        return tuple(tupled(entry) for entry in value)
    return {key: tupled(entry) for key, entry in value.items()} if isinstance(value, dict) else value


@given(st.dictionaries(names, trees, min_size=1), st.booleans())
def test_plain_data_written_as_yaml_come_back_the_same_with_a_place_for_each_value(data, flow):
    text = yaml.safe_dump(data, default_flow_style=flow, allow_unicode=True)
    document = parse(text, "f.yaml")
    assert document.data == tupled(data)
    lines = text.splitlines()
    for keys, place in document.keys.items():
        found = lines[place.line - 1][place.column - 1 :].lstrip("'\"? ")
        assert found.startswith(str(keys[-1])), dotted(keys)


@pytest.mark.parametrize("letter", ["\\ud800", "\\0", "\\e", "\\x7f", "\\r"])
def test_control_characters_and_half_letters_are_refused_with_their_place(letter: str) -> None:
    with pytest.raises(InputError, match=r"^f\.yaml:2:4: a\[0\]: holds the control character '.+'; remove it$"):
        parse(f'a:\n - "x{letter}"\n', "f.yaml")
    with pytest.raises(InputError, match=r"^f\.yaml:1:1: a key contains a control character"):
        parse(f'"x{letter}": 1\n', "f.yaml")


def test_long_quantity_is_refused_at_once():
    """Matching a quantity would take minutes for such texts, which a foreign dataset may contain."""
    for text in ("1" * 300_000 + "!", "1 m" + " " * 300_000 + "!"):
        with pytest.raises(ValidationError):
            TypeAdapter(Metres).validate_python(text)


@pytest.mark.parametrize("text", ["a: [" + "[]," * 110_000 + "]", "a: " + "x" * 2**20])
def test_a_large_text_is_not_composed(text: str, monkeypatch: pytest.MonkeyPatch):
    """Each node of a text takes a hundred times its space."""
    composed: list[int] = []
    compose = yaml.SafeLoader.compose_node
    monkeypatch.setattr(yaml.SafeLoader, "compose_node", lambda *given: composed.append(1) or compose(*given))
    monkeypatch.setattr(strict_yaml, "_NODE_LIMIT", 1000)
    with pytest.raises(InputError, match=r"f\.yaml:1:\d+: the file is too large"):
        parse(text, "f.yaml")
    assert len(composed) <= 2000
