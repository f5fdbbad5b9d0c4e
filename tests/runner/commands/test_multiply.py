"""Sources of ``nimbus multiply``: teleoperation, LeRobot and robomimic datasets; bad input is one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nimbus.datagen.datasets.multiply.foreign_sets import read_foreign_set
from nimbus.datagen.datasets.multiply.source import read_nimbus_set
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.demonstrations.demonstration_file import read_demonstration
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.tasks.task import load_task
from nimbus.runner.cli import main
from tests.support.refusals import refusal
from tests.support.runs import sound
from tests.support.shared import make_once
from tests.support.shown_tasks import show


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two teleoperated demonstrations that put a peg into a hole."""

    def make(folder: Path) -> None:
        """Record the demonstrations."""
        show("insert_peg", folder, count=2)
        assert main(["demonstrate", "insert_peg", "--images", "none", "--serial", "--out", str(folder)]) == 0

    return make_once(tmp_path_factory, "shown_peg", make)


@pytest.mark.slow
@pytest.mark.long
def test_shown_demonstrations_become_certified_episodes(tmp_path: Path):
    """Teleoperation input becomes episodes in new layouts, which replay to the last bit and can be exported."""
    shown, many = tmp_path / "shown", tmp_path / "many"
    show("place_beside", shown, count=3)
    assert main(["demonstrate", "place_beside", "--images", "none", "--serial", "--out", str(shown)]) == 0
    words = ["multiply", str(shown), "--task", "place_beside", "--episodes", "2", "--images", "none"]
    assert main([*words, "--seed", "1000", "--serial", "--out", str(many)]) == 0
    assert len(sound(many)) == 2
    assert main(["certify", str(many)]) == 0
    assert main(["export", str(many), "--to", "lerobot", "--environment-state", "--out", str(tmp_path / "le")]) == 0


@pytest.mark.slow
@pytest.mark.long
def test_demonstrations_of_another_task_or_robot_are_refused(shown: Path, tmp_path: Path, capsys):
    out = ["--out", str(tmp_path / "many")]
    assert main(["multiply", str(shown), "--task", "open_drawer", *out]) == 2
    assert (
        "has no object 'cabinet', which the task 'open_drawer' needs; its own task is 'insert_peg'"
        in capsys.readouterr().err
    )
    assert main(["multiply", str(shown), "--task", "so101_block", *out]) == 2
    assert "the demonstrations have the robot 'panda'" in capsys.readouterr().err
    assert not (tmp_path / "many").exists()


@pytest.mark.slow
@pytest.mark.long
def test_foreign_sets_give_the_demonstrations_of_the_dataset(shown: Path, tmp_path: Path):
    """A dataset that is exported to LeRobot or robomimic and read with a mapping has the same states."""
    task, robot = load_task("insert_peg"), load_robot("panda")
    own = read_nimbus_set(shown, task=task, robot=robot)
    assert main(["export", str(shown), "--to", "lerobot", "--environment-state", "--out", str(tmp_path / "le")]) == 0
    info = json.loads((tmp_path / "le/meta/info.json").read_text())
    names = info["features"]["observation.environment_state"]["names"]
    joints = {joint: number for number, joint in enumerate(robot.arm.joints)}
    kinds = {item.name: item.kind for item in own[0].layout.objects}
    lines = [
        f"joints: {{source: observation.state, entries: {json.dumps(joints)}}}",
        "grippers: {arm: {source: action, entry: 7, open: 0.04, closed: 0.0}}",
        "objects:",
    ]
    for name, kind in kinds.items():
        columns = [entry for entry in names if re.fullmatch(rf"{name}\.(x|y|z|r\d\d)", entry)]
        assert len(columns) == 9
        where = f"position: {json.dumps(columns[:3])}, rotation_6d: {json.dumps(columns[3:])}"
        lines.append(f"  {name}: {{kind: {kind}, {where}}}")
    (tmp_path / "le.yaml").write_text("\n".join(lines))
    (found, *_) = read_foreign_set(tmp_path / "le", tmp_path / "le.yaml", task=task, robot=robot, limit=1)
    assert found.rate == own[0].rate
    assert np.allclose(found.joint_positions[:, :7], own[0].joint_positions[:, :7], atol=1e-5)
    for name in kinds:
        assert np.allclose(found.bodies[name], own[0].bodies[name], atol=1e-4)


@pytest.mark.slow
@pytest.mark.long
def test_cuts_are_written_edited_and_used(shown: Path, tmp_path: Path, capsys):
    """Unchanged cuts give the same takes; a later start of the first subtask removes rows of one take."""
    words = ["multiply", str(shown), "--task", "insert_peg", "--cut-only", "--out"]
    assert main([*words, str(tmp_path / "found")]) == 0
    cuts, same, moved = (tmp_path / f"{name}.demonstrations" for name in ("found", "same", "moved"))
    assert main([*words, str(tmp_path / "same"), "--cuts", str(cuts / "cuts.yaml")]) == 0
    takes = sorted(path.name for path in cuts.glob("*.demo.json"))
    assert len(takes) == 2
    for name in takes:
        assert (same / name).read_bytes() == (cuts / name).read_bytes()
    text = (cuts / "cuts.yaml").read_text()
    first = re.search(r"first: ([\d.]+)", text)
    assert first
    text = text.replace(first[0], f"first: {float(first[1]) + 0.4:.3f}", 1)
    (cuts / "cuts.yaml").write_text(text)
    assert main([*words, str(tmp_path / "found")]) == 2
    assert "there is already a cuts file" in capsys.readouterr().err
    assert (cuts / "cuts.yaml").read_text() == text
    assert main([*words, str(tmp_path / "moved"), "--cuts", str(cuts / "cuts.yaml")]) == 0
    before, after = (read_demonstration(folder / takes[0]).takes for folder in (cuts, moved))
    rows = [[int(row) for row in re.findall(r"\d+(?=[:\]])", take[0].source)[-2:]] for take in (before, after)]
    assert rows[1] == [rows[0][0] + 6, rows[0][1]]
    assert before[1] == after[1]
    (cuts / "cuts.yaml").write_text(text.replace("    subtasks:", "    use: false\n    subtasks:", 1))
    assert main([*words, str(tmp_path / "one"), "--cuts", str(cuts / "cuts.yaml")]) == 0
    assert "the cuts file does not use it" in capsys.readouterr().out
    assert len(read_demonstration(tmp_path / "one.demonstrations" / takes[0]).takes) == 1


def robomimic_file(path: Path, *, rows: int = 40) -> Path:
    """Write a robomimic file with a peg and a board at rest."""
    with h5py.File(path, "w") as file:
        demo = file.create_group("data/demo_0")
        demo["actions"] = np.zeros((rows, 8))
        demo["obs/robot0_joint_pos"] = np.zeros((rows, 7))
        demo["obs/object"] = np.tile([0.5, -0.1, 0.05, 0, 0, 0.6, 0.8, 0.5, 0.1, 0.02, 0, 0, 0, 1], (rows, 1))
    return path


JOINTS = ", ".join(f"panda_joint{number + 1}: {number}" for number in range(7))
MAPPING = """joints: {source: obs/robot0_joint_pos, entries: {JOINTS}}
grippers: {arm: {source: actions, entry: 7, open: 1, closed: -1}}
objects:
  peg: {kind: red_round_peg, source: obs/object, position: [0, 1, 2], xyzw: [3, 4, 5, 6]}
  board: {kind: round_board, source: obs/object, position: [7, 8, 9], xyzw: [10, 11, 12, 13]}
""".replace("JOINTS", JOINTS)


def test_a_robomimic_file_is_read_by_its_mapping(tmp_path: Path):
    (tmp_path / "map.yaml").write_text(MAPPING)
    file = robomimic_file(tmp_path / "low_dim.hdf5")
    (found,) = read_foreign_set(file, tmp_path / "map.yaml", task=load_task("insert_peg"), robot=load_robot("panda"))
    assert (found.row_count, found.rate, found.layout.objects[0].kind) == (40, 20.0, "red_round_peg")
    assert np.allclose(found.bodies["peg_0"][0, :3, :3], quat_to_matrix((0.8, 0, 0, 0.6)))
    assert found.openings["arm"][0] == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("  board: {", "  bord: {", "the task 'insert_peg' has no object 'bord'"),
        (MAPPING[MAPPING.index("  board") :], "", "the pose of 'board' is not mapped"),
        ("panda_joint7: 6", "panda_joint9: 6", "the joint 'panda_joint7' of 'panda' is not mapped"),
        ("{arm: {source", "{left: {source", "the gripper of the arm 'arm' is not mapped"),
        ("obs/robot0_joint_pos", "obs/joints", "the dataset has no signal 'obs/joints'"),
        ("entry: 7", "entry: 9", "'actions' has 8 columns; there is no column 9"),
        ("entry: 7", "entry: grip", "'actions' has no column 'grip'"),
        ("xyzw: [3, 4, 5, 6]", "xyzw: [0, 1, 2, 3]", "the rotation of 'peg' is not of unit length"),
        ("red_round_peg", "red_star", "'pegs' has no kind 'red_star'"),
        ("closed: -1", "closed: 1", "open and closed have the same value"),
    ],
)
def test_a_wrong_mapping_is_one_line(tmp_path: Path, old: str, new: str, what: str):
    assert old in MAPPING
    (tmp_path / "map.yaml").write_text(MAPPING.replace(old, new))
    file = robomimic_file(tmp_path / "low_dim.hdf5")
    with pytest.raises(InputError, match=re.escape(what)):
        read_foreign_set(file, tmp_path / "map.yaml", task=load_task("insert_peg"), robot=load_robot("panda"))


def _replaced(content: object) -> Callable[[h5py.File], None]:
    def replace(file: h5py.File) -> None:
        del file["data/demo_0/actions"]
        file["data/demo_0/actions"] = content

    return replace


def _repeated(file: h5py.File) -> None:
    """Write one array of 32 million numbers under five names; zeros take no space in the file."""
    obs: Any = file["data/demo_0/obs"]
    obs.create_dataset("a0", (2**18, 128), "i1", chunks=(2**18, 128), compression="gzip")[:] = 0
    for number in range(1, 5):
        obs[f"a{number}"] = obs["a0"]


def _declared(file: h5py.File) -> None:
    del file["data/demo_0/actions"]
    file.create_dataset("data/demo_0/actions", (2**40, 8), "f8", chunks=(1024, 8))


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (_replaced(h5py.ExternalLink("/etc/x.hdf5", "/x")), "a link, which may lead into another file"),
        (_repeated, "numbers; the limit is 134217728"),
        (_declared, "declares 70368744177664 bytes, 0 are stored"),
        (_replaced(np.ones((39, 8))), "'actions' has 39 rows and 'obs/robot0_joint_pos' has 40"),
        (_replaced(np.full((40, 8), np.nan)), "'actions' has an entry that is not a number"),
        (_replaced(np.full((40, 8), 1e300)), "'actions' has an entry that is not a number"),
        (_replaced(["text"] * 40), "type object; expected numbers"),
        (_replaced(np.ones((40, 8), complex)), "type complex128; expected numbers"),
    ],
)
def test_a_hostile_robomimic_file_is_one_line(tmp_path: Path, spoil: Callable[[h5py.File], None], what: str):
    (tmp_path / "map.yaml").write_text(MAPPING)
    with h5py.File(file := robomimic_file(tmp_path / "low_dim.hdf5"), "r+") as content:
        spoil(content)
    words = {"task": load_task("insert_peg"), "robot": load_robot("panda")}
    assert what in refusal(read_foreign_set, file, tmp_path / "map.yaml", **words)


def test_a_wrong_cuts_file_is_one_line(tmp_path: Path, capsys):
    file = robomimic_file(tmp_path / "low_dim.hdf5")
    (tmp_path / "map.yaml").write_text(MAPPING)
    words = ["multiply", str(file), "--task", "insert_peg", "--mapping", str(tmp_path / "map.yaml")]
    words += ["--out", str(tmp_path / "many"), "--cuts", str(tmp_path / "cuts.yaml")]
    assert main(words) == 2
    assert "cuts.yaml: no such file or directory" in capsys.readouterr().err
    (tmp_path / "cuts.yaml").write_text("robot: panda\n")
    assert main([*words, "--use", "1"]) == 2
    assert "--use: a cuts file chooses the demonstrations" in capsys.readouterr().err
    assert main(words) == 2
    assert "is not a cuts file: it has no nimbus_cuts: 1; make one with nimbus multiply" in capsys.readouterr().err
    assert not list(tmp_path.glob("many*"))


def test_a_set_without_mapping_is_one_line(tmp_path: Path, capsys):
    file = robomimic_file(tmp_path / "low_dim.hdf5")
    assert main(["multiply", str(file), "--task", "insert_peg"]) == 2
    assert "give --mapping FILE" in capsys.readouterr().err
    assert main(["multiply", str(tmp_path / "nothing"), "--task", "insert_peg"]) == 2
    assert "no such dataset" in capsys.readouterr().err
    (tmp_path / "empty.hdf5").write_bytes(b"no")
    (tmp_path / "map.yaml").write_text(MAPPING)
    words = ["multiply", str(tmp_path / "empty.hdf5"), "--task", "insert_peg", "--mapping", str(tmp_path / "map.yaml")]
    assert main(words) == 2
    assert "empty.hdf5: cannot be read: data: no HDF5 signature at its start" in capsys.readouterr().err
