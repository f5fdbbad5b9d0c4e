"""Subtasks found from contacts alone, in demonstrations with given contacts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.datasets.multiply.contact_rows import ArmRows, ContactRows
from nimbus.datagen.datasets.multiply.cuts import find_cuts
from nimbus.datagen.datasets.multiply.source import Demonstration
from nimbus.datagen.datasets.multiply.subtasks import Subtask, make_subtasks
from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.episode.trajectory import SkillSegment
from nimbus.datagen.errors import InputError

RATE = 15.0
OPEN, SHUT = 0.04, 0.01


@dataclass
class Hand:
    """Builds the rows of one hand."""

    places: list[FloatArray] = field(default_factory=list)
    touched: list[frozenset[str]] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    opening: list[float] = field(default_factory=list)
    neighbours: list[frozenset[str]] = field(default_factory=list)
    """Objects that the held one touches."""

    def go(self, *place: float, rows: int = 10, on: str = "", holds: str = "", near: tuple[str, ...] = ()) -> Hand:
        """Move to a position while touching an object, or while holding an object that touches other objects."""
        start = self.places[-1] if self.places else np.array([0.0, 0.0, 0.4])
        for share in np.arange(1, rows + 1) / rows:
            self.places.append(start + share * (np.array(place) - start))
            self.touched.append(frozenset({on, holds} - {""}))
            self.held.append(holds)
            self.opening.append(SHUT if holds else OPEN)
            self.neighbours.append(frozenset(near))
        return self

    def stay(self, rows: int = 6, **contacts: str | tuple[str, ...]) -> Hand:
        """Stay at the position, with the given contacts."""
        return self.go(*self.places[-1], rows=rows, **contacts)  # pyright: ignore[reportArgumentType]


def thing(name: str, *place: float, anchored: bool = False) -> PlacedObject:
    """Return an object at a position."""
    return PlacedObject(
        name=name,
        group=name[:-2],
        library="blocks",
        kind="red_cube",
        variant=0,
        object_class="block",
        position=(place[0], place[1], place[2]),
        wxyz=(1.0, 0.0, 0.0, 0.0),
        rest_pose="upright",
        mass=0.1,
        friction=0.8,
        anchored=anchored,
    )


def story(hands: dict[str, Hand], *things: PlacedObject) -> tuple[Demonstration, ContactRows]:
    """Return a demonstration and its contacts; a held object moves with the hand that grasped it first."""
    count = len(next(iter(hands.values())).places)
    bodies = {one.name: np.tile(np.eye(4), (count, 1, 1)) for one in things}
    for one in things:
        bodies[one.name][:, :3, 3] = one.position
        for row in range(1, count):
            holder = next((hand for hand in hands.values() if hand.held[row] == one.name), None)
            bodies[one.name][row, :3, 3] = holder.places[row] if holder else bodies[one.name][row - 1, :3, 3]
    near = []
    for row in range(count):
        found: dict[str, set[str]] = {}
        for name, hand in hands.items():
            if hand.held[row]:
                found.setdefault(hand.held[row], set()).update({f"hand:{name}"}, hand.neighbours[row])
        near.append({name: frozenset(others) for name, others in found.items()})
    arms = {}
    for name, hand in hands.items():
        tool = np.tile(np.diag([1.0, -1.0, -1.0, 1.0]), (count, 1, 1))
        tool[:, :3, 3] = hand.places
        share = np.array(hand.opening) / OPEN
        grips = tuple(frozenset({held} - {""}) for held in hand.held)
        arms[name] = ArmRows(
            tool=tool, touched=tuple(hand.touched), gripped=grips, shares=share, commanded=share.copy()
        )
    demonstration = Demonstration(
        name="by hand",
        task="t",
        rate=RATE,
        joint_positions=np.zeros((count, 9)),
        openings={name: np.array(hand.opening) for name, hand in hands.items()},
        bodies=bodies,
        layout=PhysicalLayout(objects=things),
    )
    return demonstration, ContactRows(arms=arms, neighbours=tuple(near), base=np.zeros(3))


def take_and_put(near: tuple[str, ...] = ("goal_0",)) -> tuple[Demonstration, ContactRows]:
    """Return a demonstration in which a hand grasps a cup, carries it and puts it down."""
    hand = Hand().go(0.3, 0, 0.3).go(0.3, 0, 0.02).stay(holds="cup_0", near=("world",))
    hand.go(0.3, 0, 0.3, rows=15, holds="cup_0").go(0.3, 0.4, 0.3, rows=15, holds="cup_0")
    hand.go(0.3, 0.4, 0.03, rows=15, holds="cup_0").stay(holds="cup_0", near=near).stay(on="cup_0")
    hand.go(0.3, 0.4, 0.3)
    return story({"arm": hand}, thing("cup_0", 0.3, 0, 0.02), thing("goal_0", 0.3, 0.4, 0.0))


def cut_demonstration(
    demonstration: Demonstration, rows: ContactRows, *, related: dict[str, list[str]]
) -> list[Subtask]:
    """Cut a demonstration into the subtasks that its contacts show."""
    return make_subtasks(demonstration, rows, find_cuts(demonstration, rows, related=related))


def forms(subtasks: list[Subtask]) -> list[tuple[tuple[str, ...], str, str]]:
    """Return the arms, the frame and the verb of each subtask."""
    return [(one.arms, one.frame, one.verb) for one in subtasks]


def test_taking_and_putting_are_two_subtasks():
    """The motion between the subtasks is left out.

    The first subtask refers to the cup, the second to the object below it.
    """
    found = cut_demonstration(*take_and_put(), related={})
    assert forms(found) == [(("arm",), "cup_0", "take"), (("arm",), "goal_0", "put")]
    take, put = (one.take.tracks["arm"] for one in found)
    assert [event.action for event in take.events] == ["close"]
    assert [event.action for event in put.events] == ["open"]
    assert (take.held, put.held) == ("", "red_cube")
    assert found[0].stop < found[1].start
    # The cup is 2 cm above the table in its own frame: the hand closes at its middle.
    assert np.allclose(take.poses[take.events[0].row][:3], 0, atol=0.02)


def test_an_approach_of_a_hand_breadth_belongs_to_a_subtask():
    found = cut_demonstration(*take_and_put(), related={})
    first = found[0].take.tracks["arm"].poses[0]
    assert 0.06 < first[2] < 0.14


def test_a_thing_beside_another_is_put_relative_to_it():
    """If the table supports it, the success condition determines the reference object."""
    demonstration, rows = take_and_put(("world",))
    assert forms(cut_demonstration(demonstration, rows, related={}))[1] == (("arm",), "", "put")
    related = {"cup_0": ["goal_0"]}
    assert forms(cut_demonstration(demonstration, rows, related=related))[1] == (("arm",), "goal_0", "put")


def test_pauses_are_left_out():
    """A pause of two seconds on the way down does not change the number of poses."""
    hand = Hand().go(0.3, 0, 0.3).go(0.3, 0, 0.06).stay(30).go(0.3, 0, 0.02, rows=3)
    hand.stay(holds="cup_0", near=("world",)).go(0.3, 0, 0.3, rows=15, holds="cup_0")
    found = cut_demonstration(*story({"arm": hand}, thing("cup_0", 0.3, 0, 0.02)), related={})
    assert found[0].stop - found[0].start > 30
    assert len(found[0].take.tracks["arm"].poses) < 25


def test_pressing_is_about_the_touched_thing():
    hand = Hand().go(0.3, 0, 0.3).go(0.3, 0, 0.03).stay(on="panel_0.button").go(0.3, 0, 0.3)
    found = cut_demonstration(*story({"arm": hand}, thing("panel_0", 0.3, 0, 0, anchored=True)), related={})
    assert forms(found) == [(("arm",), "panel_0", "work on")]


def test_a_handle_is_held_through_the_whole_motion():
    """A drawer pulled by its handle is one subtask of the cabinet, with both gripper events."""
    part = "cabinet_0.drawer_0"
    hand = Hand().go(0.5, 0, 0.1).stay(holds=part).go(0.3, 0, 0.1, rows=20, holds=part).stay(on=part).go(0.2, 0, 0.2)
    demonstration, rows = story({"arm": hand}, thing("cabinet_0", 0.7, 0, 0, anchored=True))
    found = cut_demonstration(demonstration, rows, related={})
    assert forms(found) == [(("arm",), "cabinet_0", "move")]
    events = found[0].take.tracks["arm"].events
    assert [(event.action, event.on) for event in events] == [("close", "on.drawer_0"), ("open", "")]


def test_fingers_that_hook_a_handle_close_without_a_grip():
    """One finger behind the handle moves the drawer.

    In a repetition, the fingers close and open at the same positions.
    """
    part = "cabinet_0.drawer_0"
    hand = Hand().go(0.5, 0, 0.1, rows=20).stay(4, on=part).go(0.3, 0, 0.1, rows=40, on=part).stay(12, on=part)
    hand.opening[22:70] = [SHUT] * 48
    found = cut_demonstration(
        *story({"arm": hand.go(0.2, 0, 0.2)}, thing("cabinet_0", 0.7, 0, 0, anchored=True)), related={}
    )
    events = found[0].take.tracks["arm"].events
    assert [(event.action, event.opening) for event in events] == [("set", SHUT / OPEN), ("set", 1.0)]


@pytest.mark.parametrize("opens", [True, False])
def test_a_handle_that_slips_off_is_not_a_release(opens: bool):
    """The fingers open where the operator opened them, at the latest at the end."""
    part = "cabinet_0.drawer_0"
    hand = Hand().go(0.5, 0, 0.1).stay(holds=part).go(0.3, 0, 0.1, rows=20, holds=part).go(0.27, 0, 0.1, rows=20)
    hand.go(0.15, 0, 0.2, rows=20).stay(5)
    hand.opening[36 : 50 if opens else 74] = [SHUT] * (14 if opens else 38)
    found = cut_demonstration(*story({"arm": hand}, thing("cabinet_0", 0.7, 0, 0, anchored=True)), related={})
    close, release = found[0].take.tracks["arm"].events
    assert (close.action, release.action) == ("close", "open")
    assert found[0].take.tracks["arm"].poses[release.row - 1][0] < 0.3 - 0.7 - 0.01


def test_a_finger_may_leave_a_thing_that_is_pressed_down():
    """The fingers do not move while one of them loses contact with the cup on the table for 2 s."""
    demonstration, rows = take_and_put(near=("world",))
    arm = rows.arms["arm"]
    last = max(row for row, held in enumerate(arm.gripped) if held)
    count, pause = demonstration.row_count, 30
    order = [*range(last), *([last - 1] * pause), *range(last, count)]
    lost = range(last, last + pause)
    arms = {
        "arm": ArmRows(
            tool=arm.tool[order],
            touched=tuple(arm.touched[row] for row in order),
            gripped=tuple(frozenset() if place in lost else arm.gripped[row] for place, row in enumerate(order)),
            shares=arm.shares[order],
            commanded=arm.commanded[order],
        )
    }
    longer = replace(
        demonstration,
        joint_positions=demonstration.joint_positions[order],
        openings={"arm": demonstration.openings["arm"][order]},
        bodies={name: poses[order] for name, poses in demonstration.bodies.items()},
    )
    near = tuple(rows.neighbours[row] for row in order)
    taken, put = cut_demonstration(longer, ContactRows(arms=arms, neighbours=near, base=rows.base), related={})
    assert [event.action for event in taken.take.tracks["arm"].events] == ["close"]
    assert put.frame == "" and [event.action for event in put.take.tracks["arm"].events] == ["open"]


def test_a_second_grip_in_the_world_only_moves_the_fingers():
    """The cup is put on the table, gripped there again, and left; no object gives the frame of this subtask."""
    hand = Hand().go(0.3, 0, 0.3).go(0.3, 0, 0.02).stay(20, holds="cup_0", near=("world",))
    hand.go(0.3, 0, 0.3, rows=15, holds="cup_0").go(0.3, 0.4, 0.3, rows=15, holds="cup_0")
    hand.go(0.3, 0.4, 0.03, rows=15, holds="cup_0").stay(holds="cup_0", near=("world",)).stay(20, on="cup_0")
    hand.stay(20, holds="cup_0", near=("world",)).stay(20, on="cup_0").go(0.3, 0.4, 0.3)
    found = cut_demonstration(*story({"arm": hand}, thing("cup_0", 0.3, 0, 0.02)), related={})
    assert found[1].frame == ""
    assert [event.action for event in found[1].take.tracks["arm"].events] == ["open", "set", "open"]


def test_fingers_may_open_long_after_their_command():
    """Fingers that press on the table let go of the cup 2 s after the command; the release begins with the command."""
    demonstration, rows = take_and_put()
    arm = rows.arms["arm"]
    last = max(row for row, held in enumerate(arm.gripped) if held) + 1
    late = last - 36
    arm.commanded[late:last] = 1.0
    put = cut_demonstration(demonstration, rows, related={})[1]
    assert [event.action for event in put.take.tracks["arm"].events] == ["open"]


def test_the_frame_of_a_drawer_is_the_drawer():
    """Drawers of different cabinets have their handles at the same place, and cabinets do not."""
    demonstration, rows = story(
        {"arm": Hand().go(0.5, 0, 0.1).stay(holds="cabinet_0.drawer_0").go(0.3, 0, 0.1, holds="cabinet_0.drawer_0")},
        thing("cabinet_0", 0.7, 0, 0, anchored=True),
    )
    drawer = np.tile(np.eye(4), (demonstration.row_count, 1, 1))
    drawer[:, :3, 3] = (0.7, 0.0, 0.08)
    demonstration = replace(demonstration, bodies={**demonstration.bodies, "cabinet_0.drawer_0": drawer})
    (found,) = cut_demonstration(demonstration, rows, related={})
    assert found.frame == "cabinet_0.drawer_0"
    assert found.take.base_T_frame[:3] == (0.7, 0.0, 0.08)


def test_pouring_without_contact_is_a_subtask_of_the_nearest_thing():
    demonstration, rows = take_and_put(("world",))
    poses = demonstration.bodies["cup_0"]
    carried = slice(45, 55)
    poses[carried, :3, :3] = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    found = cut_demonstration(demonstration, rows, related={})
    assert (("arm",), "goal_0", "work with") in forms(found)


def lifting(hold: int) -> Hand:
    """Return the rows of a hand that grasps one end of a tray and lifts it."""
    side = 0.2 if hold else -0.2
    hand = Hand().go(0.3, side, 0.3).go(0.3, side, 0.02).stay(holds="tray_0", near=("world",))
    return hand.go(0.3, side, 0.3, rows=20, holds="tray_0")


def test_two_hands_on_one_thing_move_in_step():
    demonstration, rows = story({"left": lifting(1), "right": lifting(0)}, thing("tray_0", 0.3, 0, 0.02))
    found = cut_demonstration(demonstration, rows, related={})
    assert forms(found) == [(("left", "right"), "tray_0", "take together")]
    tracks = found[0].take.tracks
    assert len(tracks["left"].poses) == len(tracks["right"].poses)


def test_a_handover_happens_in_the_world():
    """The receiver's grasp is relative to the object in the giver's hand, wherever the giver holds it."""
    giver = Hand().go(0.3, 0.2, 0.02).stay(holds="cup_0", near=("world",)).go(0.3, 0, 0.3, rows=20, holds="cup_0")
    giver.stay(20, holds="cup_0").stay(on="cup_0").go(0.3, 0.3, 0.3)
    receiver = Hand().go(0.3, -0.4, 0.3, rows=36)
    receiver.go(0.3, -0.02, 0.3, rows=10).stay(16, holds="cup_0").go(0.3, -0.2, 0.3, holds="cup_0")
    short = len(giver.places) - len(receiver.places)
    (receiver if short > 0 else giver).stay(abs(short), **({"holds": "cup_0"} if short > 0 else {}))
    found = cut_demonstration(*story({"left": giver, "right": receiver}, thing("cup_0", 0.3, 0.2, 0.02)), related={})
    assert forms(found)[:2] == [
        (("left",), "cup_0", "take"),
        (("left", "right"), "", "hand over"),
    ]
    events = found[1].take.tracks["right"].events
    assert [(event.action, event.on) for event in events] == [("close", "hand:left")]


def test_labels_cut_what_contacts_do_not():
    """Two skills during one contact are two subtasks if they are labeled."""
    hand = Hand().go(0.3, 0, 0.02).stay(20, on="dial_0").go(0.3, 0.03, 0.02, rows=20, on="dial_0").go(0.3, 0, 0.3)
    demonstration, rows = story({"arm": hand}, thing("dial_0", 0.3, 0, 0, anchored=True))
    labels = tuple(
        SkillSegment(start=start, stop=stop, skill=skill, target="dial_0", phase="")
        for start, stop, skill in ((0, 30, "press"), (30, 60, "turn"))
    )
    assert len(cut_demonstration(demonstration, rows, related={})) == 1
    assert len(cut_demonstration(replace(demonstration, labels=labels), rows, related={})) == 2


def test_a_demonstration_without_contact_is_refused():
    demonstration, rows = story({"arm": Hand().go(0.3, 0, 0.3).go(0.3, 0.3, 0.3)}, thing("cup_0", 0.3, 0, 0))
    with pytest.raises(InputError, match="has no contacts: no hand touches an object"):
        cut_demonstration(demonstration, rows, related={})


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"rate": 2.0}, "has a rate of 2 Hz; record at 4 to 1000 Hz"),
        ({"joint_positions": np.zeros((5, 9))}, "has only 5 rows, 0.3 s"),
        ({"joint_positions": np.zeros((100_000, 9))}, "has 100000 rows, .* the limit is 3600 s"),
        ({"joint_positions": np.full((60, 9), np.nan)}, "not finite"),
    ],
)
def test_unusable_demonstrations_are_refused_in_one_line(change: dict[str, object], what: str):
    demonstration, _ = take_and_put()
    with pytest.raises(InputError, match=what):
        replace(demonstration, **change).check()  # pyright: ignore[reportArgumentType]
