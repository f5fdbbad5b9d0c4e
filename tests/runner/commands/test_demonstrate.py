"""``nimbus demonstrate``: recordings become ordinary episodes; recordings of other tasks are refused in one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.progress import show_activity
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.tasks.task import load_task
from nimbus.datagen.teleoperate.recording import OperatorRecording, RecordingFolder
from nimbus.datagen.teleoperate.session import TeleoperationSession
from nimbus.runner.cli import main
from tests.support.operators import show, throw_away
from tests.support.runs import TINY, sound

TASK = load_task(TINY)
NAMES = (*(f"panda_joint{number}" for number in range(1, 8)), "gripper")


def recorded(**changes: object) -> OperatorRecording:
    """Return a recording of an arm at rest."""
    still = OperatorRecording(
        task=TASK.name,
        task_hash=TASK.content_hash,
        robot="panda",
        rate=TASK.rate,
        index=0,
        action_names=NAMES,
        actions=((0.0,) * 8,) * 9,
    )
    return replace(still, **changes)  # pyright: ignore[reportArgumentType]


def demonstrate(folder: Path) -> int:
    return main(["demonstrate", str(TINY), "--serial", "--out", str(folder)])


def test_no_recordings_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert demonstrate(tmp_path / "demos") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "demos").exists()


@pytest.mark.parametrize(
    ("recordings", "words"),
    [
        ([recorded(), recorded(index=1, seed=4)], "several seeds: 0, 4"),
        ([recorded(robot="so101")], "recorded with robot so101"),
        ([recorded(actions=((0.0,) * 8,) * 2)], "has 2 commands; a demonstration has at least 5"),
    ],
)
def test_unfit_recordings_are_one_line(
    recordings: list[OperatorRecording], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = RecordingFolder.beside(tmp_path / "demos")
    for recording in recordings:
        folder.keep(recording)
    assert demonstrate(tmp_path / "demos") == 2
    found = capsys.readouterr().err
    assert words in found and found.count("\n") == 1
    assert not (tmp_path / "demos").exists()


@pytest.mark.slow
def test_demonstrations_replay_and_hold_a_certificate(tmp_path: Path):
    session = TeleoperationSession(TASK, load_assets(TASK), operator="Ada", device="script")
    told: list[str] = []
    folder, final = RecordingFolder.beside(tmp_path / "demos"), session.environment.simulation.joint_positions()
    for index, prompt in enumerate(["", "Away with the can."]):
        session.reset(index)
        session.prompt = prompt
        assert show(session, throw_away(session, "items_0", "recycling", seed=index)).is_success
        final = session.environment.simulation.joint_positions()
        folder.keep(session.recording())
        with show_activity(told.append):
            assert demonstrate(tmp_path / "demos") == 0  # the second call adds the second episode
    assert len(sound(tmp_path / "demos")) == 2
    total = round(len(folder.read(1).actions) / TASK.rate)
    assert f"physics at 2 of {total} s" in told and f"images at 0 of {total} s" in told
    assert main(["certify", str(tmp_path / "demos"), "--sample", "1"]) == 0
    path = next((tmp_path / "demos" / "episodes").glob("*-000001-*.hdf5"))
    with EpisodeFile(path) as episode:
        assert episode.layout().visual.instruction == "Away with the can."
        ancestors, made = episode.provenance.ancestors, episode.trajectory()
    assert ancestors["operator"] == "Ada" and ancestors["recording"] == folder.read(1).content
    assert made.step_count == len(folder.read(1).actions) and made.outcome.success
    assert {part.skill for part in made.segments} == {"teleoperation"}
    assert abs(made.joint_positions[-1] - final).max() < 0.1
