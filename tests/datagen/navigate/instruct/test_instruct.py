"""Instructions are read back unchanged, verified from stored data alone, and reworded only with the same claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.navigate.instruct.claims import Claim, InstructionStep, StoredInstruction, noun_of, room_noun
from nimbus.datagen.navigate.instruct.events import WayAlong, find_steps, shorten
from nimbus.datagen.navigate.instruct.glimpse import Glimpses
from nimbus.datagen.navigate.instruct.grammar import read_claims, write_text
from nimbus.datagen.navigate.instruct.proof import DriveRecord, find_false_claims
from nimbus.datagen.navigate.instruct.reworded import misfit
from nimbus.datagen.navigate.navigation_scene import NavigationScene, ScenePart
from nimbus.datagen.random_streams import generator
from nimbus.datagen.rooms.home import HOME_KINDS
from nimbus.datagen.rooms.home_rooms import HOME_ROOMS

CLASSES = ("sofa", "chair", "wardrobe")
CORNERS = np.array([[(4.0, 0.8, 0.0), (5.0, 1.6, 0.8)], [(8.6, 3.4, 0.0), (9.4, 3.8, 0.9)], [(0, -9, 0), (1, -8, 2)]])


def drive() -> WayAlong:
    """Return a drive of six meters along x past a sofa, then to the left into the kitchen and to a chair."""
    straight = np.column_stack([np.arange(0, 9, 0.06), np.zeros(150), np.zeros(150)])
    yaws = np.concatenate([np.zeros(150), np.linspace(0, np.pi / 2, 20), np.full(40, np.pi / 2)])
    turn = np.repeat(straight[-1:], 20, axis=0)
    on = np.column_stack([np.full(40, straight[-1, 0]), 0.06 * np.arange(1, 41), np.zeros(40)])
    rooms = ("hall_0",) * 180 + ("kitchen_0",) * 30
    return WayAlong(rate=10.0, feet=np.concatenate([straight, turn, on]), yaws=yaws, rooms=rooms)


def spanned(corners: FloatArray) -> Triangles:
    """Make a triangle between two corners (2, 3) of a box."""
    vertices = np.array([*corners, corners[0]], dtype=np.float32)
    return Triangles(
        vertices=vertices,
        faces=np.array([[0, 1, 2]], dtype=np.int32),
        normals=np.zeros((3, 3), dtype=np.float32),
        uvs=np.zeros((3, 2), dtype=np.float32),
        colors=np.ones((3, 3), dtype=np.float32),
    )


def scene() -> NavigationScene:
    """Make a scene of a sofa, a chair and a wardrobe that no view shows."""
    parts = tuple(
        ScenePart(name=f"{name}_0", object_class=name, room="", triangles=spanned(corners))
        for name, corners in zip(CLASSES, CORNERS, strict=True)
    )
    return NavigationScene(name="made", content_hash="", parts=parts)


def record() -> DriveRecord:
    """Return the record of the drive as in a stored episode, with the generated instruction."""
    way = drive()
    shares = np.zeros((len(way.yaws), 3))
    shares[:80, 0] = 0.1
    shares[150:, 1] = 0.1
    rows = np.arange(0, len(way.yaws), 4)
    steps = find_steps(way, scene(), Glimpses(rows=rows, shares=shares[rows]), "chair_0")
    text, words = write_text([step.claim for step in steps], generator(0))
    told = tuple(replace(step, text=text) for step, text in zip(steps, words, strict=True))
    return DriveRecord(
        instruction=text,
        stored=StoredInstruction(source="template", steps=told),
        positions=way.feet,
        yaws=way.yaws,
        rooms=way.rooms,
        classes=CLASSES,
        boxes=CORNERS,
        shares=shares,
    )


def test_steps_are_found_in_order_and_proved():
    found = record()
    kinds = [(step.claim.kind, step.claim.side, step.claim.noun) for step in found.stored.steps]
    passed, end = ("pass", "left", "sofa"), ("stop", "", "chair")
    assert kinds == [passed, ("turn", "left", ""), ("enter", "", "kitchen"), end]
    assert find_false_claims(found) == ()


@pytest.mark.parametrize("number", range(4))
def test_each_false_claim_is_found(number: int):
    """A step with another side, room or object, in both the text and the steps, is false."""
    found = record()
    steps = list(found.stored.steps)
    claim = steps[number].claim
    wrong = {"turn": {"side": "right"}, "pass": {"side": "right"}, "enter": {"noun": "bathroom"}}
    claim = replace(claim, **wrong.get(claim.kind, {"noun": "wardrobe"}))  # pyright: ignore[reportArgumentType]
    steps[number] = replace(steps[number], claim=claim)
    text, _ = write_text([step.claim for step in steps], generator(0))
    lie = replace(found, instruction=text, stored=StoredInstruction(source="template", steps=tuple(steps)))
    assert len(find_false_claims(lie)) == 1
    assert "differ from those" in find_false_claims(replace(found, instruction=text))[0]


def test_things_out_of_sight_are_not_claimed():
    found = record()
    (problem,) = find_false_claims(replace(found, shares=np.zeros((len(found.yaws), 3))))
    assert problem.startswith("step 1, rows") and problem.endswith("no sofa is seen")
    two = replace(found, classes=("sofa", "chair", "chair"), boxes=found.boxes[[0, 1, 1]])
    assert "2 objects 'chair' are seen" in find_false_claims(two)[-1]


def test_things_of_other_rooms_count_only_where_masks_show_them():
    """Without stored masks, a second sofa elsewhere makes no claim false."""
    found = record()
    two = replace(found, classes=("sofa", "chair", "sofa"), shares=None)
    assert find_false_claims(two) == ()


def test_things_are_not_checked_without_labels():
    """A dataset of states has only poses and rooms."""
    found = record()
    bare = replace(found, classes=(), boxes=np.zeros((0, 2, 3)), shares=None)
    assert find_false_claims(bare) == ()
    assert [bare.can_check(step.claim) for step in bare.stored.steps] == [False, True, True, False]
    back = replace(bare, yaws=-found.yaws)
    assert "not left" in find_false_claims(back)[0]


def test_any_claims_are_read_back_as_written():
    nouns = sorted({noun_of(name) for name in (*HOME_KINDS, *HOME_ROOMS)} - {""})
    assert len(nouns) > 120
    for number in range(200):
        rng = generator(number)
        kinds = rng.choice(["turn", "enter", "pass", "stop"], size=int(rng.integers(1, 12)))
        claims = []
        for kind in kinds.tolist():
            noun = "" if kind == "turn" else nouns[int(rng.integers(len(nouns)))]
            side = {"turn": ("left", "right", "around"), "pass": ("left", "right")}.get(kind, ("",))
            unique = kind in ("turn", "enter") or bool(rng.integers(2))
            claims.append(Claim(kind=kind, side=side[int(rng.integers(len(side)))], noun=noun, is_unique=unique))
        assert read_claims(write_text(claims, rng)[0]) == tuple(claims)


def test_other_sentences_are_not_of_the_grammar():
    for text in ("Fly to the sofa.", "Turn left", "Turn left. ."):
        with pytest.raises(ValueError, match="text|step"):
            read_claims(text)
    assert room_noun("dining_room_12") == "dining room"
    assert noun_of("LEFT wall!") == "" == noun_of("sofa and table")


def test_long_instructions_lose_what_is_least_needed():
    steps = record().stored.steps
    assert [step.claim.kind for step in shorten(steps, 3)] == ["turn", "enter", "stop"]
    assert [step.claim.kind for step in shorten(steps, 1)] == ["stop"]


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        ("Keep the sofa on your left as you go.", ""),
        ("Keep the sofa on your right as you go.", "contains right"),
        ("Go past the chair on your left.", "does not name the sofa"),
        ("Pass the sofa and the chair on your left.", "also names the chair"),
        ("Pass the sofa on your left and turn left.", "asks for more"),
        ("Do not pass the sofa on your left.", "contains not and left"),
        ("Don\N{RIGHT SINGLE QUOTATION MARK}t pass the sofa on your left.", "contains don't and left"),
        ("Go on without passing the sofa on your left.", "contains without and left"),
        ("Pass the sofa on your left for 3 m.", "contains a digit"),
        ("Pass the sofa on your left. Then sleep.", "is not one sentence"),
        ("", "is not one sentence"),
    ],
)
def test_sentences_of_models_claim_their_step_alone(sentence: str, problem: str):
    found = misfit(sentence, Claim(kind="pass", side="left", noun="sofa"), {"sofa", "chair", "kitchen"})
    assert problem in found if problem else not found


def test_damaged_steps_are_refused_in_one_line():
    with pytest.raises(InputError, match="steps of its instruction are damaged"):
        StoredInstruction.from_drawn({"instruction": {"source": 3}}, where="a file")
    steps = (InstructionStep(claim=Claim(kind="turn", side="left"), start=0, stop=9, text="turn left"),)
    stored = StoredInstruction(source="template", steps=steps)
    assert StoredInstruction.from_drawn({"instruction": stored.to_plain()}, where="") == stored
