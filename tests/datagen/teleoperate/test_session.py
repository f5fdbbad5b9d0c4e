"""A session without a browser: scripted hands with jitter, undo, bad input, and recordings on disk."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.tasks.task import load_task
from nimbus.datagen.teleoperate import recording as recording_module
from nimbus.datagen.teleoperate.operator_input import (
    IDLE,
    HandlePose,
    JointTarget,
    OperatorInput,
    PoseTarget,
    ToolCommand,
    ToolMotion,
    ToolTwist,
)
from nimbus.datagen.teleoperate.recording import RecordingFolder
from nimbus.datagen.teleoperate.session import SessionPhase, TeleoperationSession
from tests.support.operators import pointing, show, throw_away
from tests.support.runs import TINY


@pytest.fixture(scope="module")
def made() -> TeleoperationSession:
    task = load_task(TINY)
    return TeleoperationSession(task, load_assets(task), operator="Ada", device="script")


@pytest.fixture
def session(made: TeleoperationSession) -> Iterator[TeleoperationSession]:
    made.reset(0)
    made.prompt = ""
    yield made


def give(motion: ToolMotion | None, opening: float | None = None) -> OperatorInput:
    """Return input for the only arm."""
    return OperatorInput(arms={"arm": ToolCommand(motion=motion, opening=opening)})


def state_of(session: TeleoperationSession) -> bytes:
    """Return the state of physics to the last bit."""
    data = session.environment.simulation.data
    return data.qpos.tobytes() + data.qvel.tobytes()


def move(session: TeleoperationSession, way: tuple[float, float, float], count: int) -> None:
    goal = session.tool_poses()["arm"]
    goal = pointing(goal, goal[:3, 3] + way)
    for _ in range(count):
        session.step(give(PoseTarget(world_T_tool=goal)))


def test_an_operator_throws_a_can_away(session: TeleoperationSession):
    state = show(session, throw_away(session, "items_0", "recycling"))
    assert state.is_success and state.failure == ""
    recording = session.recording()
    assert (recording.operator, recording.device, recording.index) == ("Ada", "script", 0)
    assert len(recording.actions) == state.step_count


def test_the_state_names_the_hand_and_the_missing_condition(session: TeleoperationSession):
    state = session.state()
    assert state.openings == pytest.approx({"arm": 1.0}) and state.held == {}
    assert state.failure == "inside items_0: items_0 is not in recycling"
    session.record()
    for given in throw_away(session, "items_0", "recycling"):
        if (state := session.step(given)).held:
            break
    assert state.openings == pytest.approx({"arm": 0.0}) and state.held == {"arm": "items_0"}


def test_same_input_gives_the_same_commands(session: TeleoperationSession):
    rows = []
    for _ in range(2):
        session.reset(0)
        session.record()
        for _, given in zip(range(12), throw_away(session, "items_0", "recycling"), strict=False):
            session.step(given)
        rows.append(session.recording().rows)
    assert np.array_equal(*rows)


def test_going_back_restores_physics_and_goes_on(session: TeleoperationSession):
    session.record()
    move(session, (0.0, 0.1, -0.1), 20)
    before, kept = state_of(session), session.recording().rows
    move(session, (0.1, 0.0, 0.0), 17)
    session.undo(17 / session.task.rate)
    assert session.phase is SessionPhase.PAUSED and state_of(session) == before
    session.record()
    move(session, (0.0, -0.1, 0.0), 6)
    recording = session.recording()
    assert np.array_equal(recording.rows[:20], kept) and len(recording.actions) == 26 and recording.undone == 1


def test_time_waits_for_the_first_motion(session: TeleoperationSession):
    session.record()
    for _ in range(3):
        assert session.step(IDLE).phase is SessionPhase.ARMED
    move(session, (0.0, 0.0, -0.05), 1)
    assert session.phase is SessionPhase.RECORDING and session.step_count == 1


def test_recording_begins_where_the_layout_does(session: TeleoperationSession):
    start = state_of(session)
    move(session, (0.1, 0.1, 0.0), 10)
    assert state_of(session) != start
    session.record()
    assert state_of(session) == start


def test_target_out_of_reach_stretches_the_arm(session: TeleoperationSession):
    goal = pointing(session.tool_poses()["arm"], np.array([3.0, 0.0, 0.5]))
    steps, state = [], session.state()
    for _ in range(40):
        state = session.step(give(PoseTarget(world_T_tool=goal)))
        steps.append(session.environment.present_action())
    assert state.blocked == ("arm",) and session.environment.simulation.is_stable
    limits = np.array(session.assets.robot.arm.velocity_limits) / session.task.rate
    assert (np.abs(np.diff(steps, axis=0))[:, :-1] < limits).all()


def test_clutch_moves_the_handle_without_the_tool(session: TeleoperationSession):
    handle, start = np.eye(4), session.tool_poses()["arm"]
    middle = 0.0
    for number, engaged in enumerate([True] * 10 + [False] * 10 + [True] * 10):
        handle = handle.copy()
        handle[0, 3] += 0.005 if engaged else -0.005
        session.step(give(HandlePose(space_T_handle=handle, is_engaged=engaged)))
        if number == 9:
            middle = session.targets()["arm"][0, 3]
    # Two strokes of nine periods each: the first period of a stroke only engages.
    assert np.isclose(session.targets()["arm"][0, 3] - start[0, 3], 0.09, atol=0.005)
    assert np.isclose(middle - start[0, 3], 0.045, atol=0.005)


def test_twist_stops_when_the_stick_is_released(session: TeleoperationSession):
    for _ in range(10):
        session.step(give(ToolTwist(linear=np.array([0.0, 0.1, 0.0]), angular=np.zeros(3))))
    for _ in range(20):
        session.step(give(None))
    one = session.tool_poses()["arm"]
    session.step(IDLE)
    assert np.allclose(session.tool_poses()["arm"], one, atol=2e-4)
    assert np.allclose(session.targets()["arm"][:3, 3], one[:3, 3], atol=2e-3)


def press_on_table(session: TeleoperationSession, given: OperatorInput, *, seconds: float) -> float:
    """Give the same input until the hand stands on the table and some time has passed; return the tool's height [m]."""
    for _ in range(round(seconds * session.task.rate)):
        session.step(given)
    return float(session.tool_poses()["arm"][2, 3])


@pytest.mark.parametrize("device", ["keys", "handle"])
def test_blocked_tool_turns_around_at_once(session: TeleoperationSession, device: str):
    """The operator pushes the hand onto the table for two seconds, and then lifts it by a short motion."""
    down, start = np.array([0.0, 0.0, -0.25]), session.tool_poses()["arm"]
    move(session, (0.05, 0.0, -0.1), 25)  # above a free place
    press_on_table(session, give(ToolTwist(linear=down, angular=np.zeros(3))), seconds=2.5)
    start = session.tool_poses()["arm"]
    handle = np.eye(4)
    if device == "handle":
        for _ in range(30):
            handle = pointing(handle, handle[:3, 3] + down / session.task.rate)
            session.step(give(HandlePose(space_T_handle=handle, is_engaged=True)))
    low = session.tool_poses()["arm"][2, 3]
    assert abs(low - start[2, 3]) < 0.005, "the hand stands on the table"
    assert np.linalg.norm(session.targets()["arm"][:3, 3] - session.tool_poses()["arm"][:3, 3]) < 0.03
    for _ in range(5):  # 8 cm
        handle = pointing(handle, handle[:3, 3] - down / session.task.rate)
        up = ToolTwist(linear=-down, angular=np.zeros(3))
        session.step(give(HandlePose(space_T_handle=handle, is_engaged=True) if device == "handle" else up))
    for _ in range(5):
        session.step(IDLE)
    assert session.tool_poses()["arm"][2, 3] > low + 0.03


def test_pressed_fingers_are_named(session: TeleoperationSession):
    """Fingers that stand on the table do not close; they do once the tool is raised."""
    move(session, (0.05, 0.0, -0.1), 25)
    high = session.state().heights["arm"]
    assert high == pytest.approx(session.tool_poses()["arm"][2, 3], abs=0.01), "above the table, whose top is at 0"
    down = ToolTwist(linear=np.array([0.0, 0.0, -0.25]), angular=np.zeros(3))
    press_on_table(session, give(down), seconds=2.5)
    press_on_table(session, give(None, opening=0.0), seconds=1.0)
    assert session.state().pressing == ("arm",) and session.state().heights["arm"] < 0.03
    press_on_table(session, give(ToolTwist(linear=np.array([0.0, 0.0, 0.1]), angular=np.zeros(3))), seconds=1.0)
    assert session.state().pressing == ()


def test_leader_arm_sets_the_posture(session: TeleoperationSession):
    wanted = np.array(session.assets.robot.arm.home) + 0.05
    for _ in range(20):
        session.step(give(JointTarget(positions=wanted), opening=0.5))
    posture = session.environment.present_action()
    gripper = session.assets.robot.gripper
    assert np.allclose(posture[:-1], wanted, atol=0.01)
    assert np.isclose(posture[-1], (gripper.open + gripper.closed) / 2, atol=0.002)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (OperatorInput(arms={"third": ToolCommand()}), "no arm 'third'"),
        (give(PoseTarget(world_T_tool=np.eye(3))), "has the shape (3, 3)"),
        (give(ToolTwist(linear=np.full(3, np.nan), angular=np.zeros(3))), "is not finite"),
        (give(JointTarget(positions=np.zeros(2))), "has the shape (2,)"),
        (give(None, opening=float("inf")), "opening of 'arm' is not finite"),
    ],
)
def test_wrong_input_moves_nothing(session: TeleoperationSession, given: OperatorInput, words: str):
    before = state_of(session)
    with pytest.raises(InputError, match=words.replace("(", r"\(").replace(")", r"\)")):
        session.step(given)
    assert state_of(session) == before


def test_recordings_survive_the_process(session: TeleoperationSession, tmp_path: Path):
    folder = RecordingFolder.beside(tmp_path / "out" / "demos")
    session.prompt = "Away with it."
    session.record()
    move(session, (0.0, 0.1, 0.0), 9)
    folder.save_unfinished(session.recording())
    before = state_of(session)
    session.reset(3)
    found = folder.unfinished()
    assert found
    session.resume(found)
    assert state_of(session) == before and session.phase is SessionPhase.PAUSED
    assert folder.next_index() == 0
    folder.keep(session.recording())
    assert folder.indices() == (0,) and folder.next_index() == 1 and folder.unfinished() is None
    assert folder.read(0) == replace(found, device="script")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": "other"}, "recorded with task other; the task has tiny"),
        ({"robot": "so101"}, "recorded with robot so101; the task has panda"),
        ({"rate": 30.0}, "recorded with rate 30.0; the task has 15.0"),
        ({"task_hash": "0"}, "another version of task 'tiny'"),
        ({"actions": ()}, "has 0 commands; a demonstration has at least 5"),
        ({"actions": ((0.0,),) * 9}, "a command does not have 8 entries"),
        ({"actions": ((float("nan"),) * 8,) * 9}, "a command is not finite"),
    ],
)
def test_recording_of_something_else_is_refused(session: TeleoperationSession, change: dict[str, object], words: str):
    session.record()
    move(session, (0.0, 0.1, 0.0), 6)
    recording = replace(session.recording(), **change)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=words):
        recording.check(session.task, session.assets.robot, where="x")


def test_too_short_a_recording_is_refused(session: TeleoperationSession):
    session.record()
    move(session, (0.0, 0.1, 0.0), 2)
    with pytest.raises(InputError, match="2 commands are recorded"):
        session.recording()


@pytest.mark.parametrize(
    "text",
    [b'{"task": 1', b'{"task": "\xff"}', b'{"actions": [[NaN]]}', b'{"actions": [[1e999]]}', b"[" * 100_000],
)
def test_damaged_recording_is_one_line(text: bytes, tmp_path: Path):
    folder = RecordingFolder(tmp_path)
    folder.path(0).write_bytes(text)
    with pytest.raises(InputError, match="recording_000000") as caught:
        folder.read(0)
    assert "\n" not in str(caught.value)


def test_recording_of_too_many_rows_takes_no_memory(tmp_path: Path):
    """Each empty list in a row takes 56 bytes of memory, twenty times the size of its text."""
    folder = RecordingFolder(tmp_path)
    folder.path(0).write_text('{"actions": [' + "[]," * 1_000_000 + "[]]}")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="length <= 1000000"):
            folder.read(0)
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()


def test_recording_of_too_many_numbers_is_not_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(recording_module, "_MOST_NUMBERS", 9)
    folder = RecordingFolder(tmp_path)
    folder.path(0).write_text('{"actions": [[' + "0," * 10 + "0]]}")
    with pytest.raises(InputError, match="more than 9 values"):
        folder.read(0)


def test_recordings_behind_a_link_are_not_touched(tmp_path: Path):
    (tmp_path / "demos-recordings").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="demos-recordings: this is a link"):
        RecordingFolder.beside(tmp_path / "demos")
