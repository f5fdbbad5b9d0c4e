from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.runner.cli import main
from nimbus.runner.commands.verify import command
from tests.support.agreement import agree
from tests.support.described import describe
from tests.support.runs import run as start_again
from tests.support.runs import sound
from tests.support.synthetic import write_dataset


def run(folder: Path, *, as_json: bool = False, again: int = 0) -> int:
    return command(folder, as_json=as_json, count=again)


def first(folder: Path) -> Path:
    return sorted((folder / "episodes").iterdir())[0]


def edit(path: Path, change: Callable[[h5py.File], None]) -> None:
    with h5py.File(path, "r+") as file:
        change(file)


def test_a_good_dataset_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    assert run(tmp_path / "data") == 0
    printed = capsys.readouterr().out
    assert "all is well" in printed and "episodes" in printed
    assert not [line for line in printed.splitlines() if line != line.rstrip()]
    assert "nimbus run" not in printed


def test_json_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    assert run(tmp_path / "data", as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["episode_count"], found["step_count"], found["failed_count"], found["problems"]) == (2, 40, 1, [])


def _flip_action(file: h5py.File) -> None:
    file["action"][0, 0] = 0.125  # pyright: ignore[reportIndexIssue]


def _nan_qpos(file: h5py.File) -> None:
    file["observations/qpos"][3, 1] = np.nan  # pyright: ignore[reportIndexIssue]


def _endless_box(file: h5py.File) -> None:
    file["observations/boxes_2d/front"][3, 1] = np.inf  # pyright: ignore[reportIndexIssue]


def _stop_clock(file: h5py.File) -> None:
    file["time"][5] = file["time"][4]  # pyright: ignore[reportIndexIssue]


def _long_quaternion(file: h5py.File) -> None:
    file["observations/body_wxyz"][2, 1, 0] = 1.1  # pyright: ignore[reportIndexIssue]


def _shorten_depth(file: h5py.File) -> None:
    del file["observations/depth/front"]
    file["observations/depth/front"] = np.zeros((19, 48, 64), np.uint16)


def _float_images(file: h5py.File) -> None:
    del file["observations/images/front"]
    file["observations/images/front"] = np.zeros((20, 48, 64, 3), np.float32)


def _drop_camera(file: h5py.File) -> None:
    del file["observations/images/wrist"]


def _drop_actions(file: h5py.File) -> None:
    del file["action"]


def _add_stranger(file: h5py.File) -> None:
    file["rewards"] = np.zeros(20)


def _fewer_bodies(file: h5py.File) -> None:
    values = file["observations/body_wxyz"][:, :2]  # pyright: ignore[reportIndexIssue]
    del file["observations/body_wxyz"]
    file["observations/body_wxyz"] = values


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_flip_action, "content differs from what was written"),
        (_nan_qpos, "observations/qpos: holds numbers that are not finite"),
        (_endless_box, "observations/boxes_2d/front: holds numbers that are not finite"),
        (_stop_clock, "time: does not grow at step 5"),
        (_long_quaternion, "not of unit length"),
        (_shorten_depth, "observations/depth/front: shape (19, 48, 64)"),
        (_float_images, "observations/images/front: type float32, expected uint8"),
        (_drop_camera, "observations/images/wrist: missing"),
        (_drop_actions, "action: missing"),
        (_add_stranger, "rewards: unknown dataset"),
        (_fewer_bodies, "observations/body_wxyz: shape (20, 2, 4)"),
    ],
)
def test_a_changed_episode_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[h5py.File], None], message: str
) -> None:
    write_dataset(tmp_path / "data")
    edit(first(tmp_path / "data"), change)
    assert run(tmp_path / "data") == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"episodes/{first(tmp_path / 'data').name}: ") and message in line for line in lines)


@pytest.mark.slow
def test_an_episode_damaged_in_its_place_is_made_again_once_its_file_is_deleted(
    copy: Path, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = first(copy)
    size = path.stat().st_size
    edit(path, _flip_action)
    assert path.stat().st_size == size
    assert run(copy) == 1
    printed = capsys.readouterr().out
    assert f"episodes/{path.name}: the content differs" in printed
    assert "to make an episode again: delete its file and repeat the 'nimbus run' that made it\n" in printed
    path.unlink()
    assert start_again("--episodes", "2", "--variants", "2", out=copy) == 0
    assert sound(copy) == sound(tiny)


def test_a_flipped_byte_in_the_middle_of_a_file_is_found(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data")
    path = first(tmp_path / "data")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert run(tmp_path / "data") == 1


@pytest.mark.parametrize("size", [0, 100, 5000, -1])
def test_a_cut_file_is_found_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int) -> None:
    write_dataset(tmp_path / "data")
    path = first(tmp_path / "data")
    path.write_bytes(path.read_bytes()[:size])
    assert run(tmp_path / "data") == 1
    assert path.name in capsys.readouterr().out


@pytest.mark.parametrize(("command", "code"), [("hash", 2), ("report", 0), ("verify", 1)])
def test_damage_inside_compressed_data_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, code: int
) -> None:
    write_dataset(tmp_path / "data")
    path = first(tmp_path / "data")
    with h5py.File(path) as file:
        chunk = file["observations/images/front"].id.get_chunk_info(0)  # pyright: ignore[reportAttributeAccessIssue]
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    path.write_bytes(content)
    assert main([command, str(tmp_path / "data")]) == code
    out, error = capsys.readouterr()
    assert error.count("\n") == (code == 2)
    if code:
        assert f"{path.name}: cannot be read: observations/images/front: " in out + error


def test_a_damaged_text_inside_an_episode_is_one_line(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data")
    path = first(tmp_path / "data")
    with h5py.File(path, "r+") as file:
        file["layout"][()] = "{bad"  # pyright: ignore[reportIndexIssue]
    with EpisodeFile(path) as episode, pytest.raises(InputError, match="cannot be read: layout: ") as caught:
        episode.layout()
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_missing_and_stray_files_and_wrong_counts_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    gone = first(tmp_path / "data")
    gone.rename(gone.with_name("renamed.hdf5"))
    describe(tmp_path / "data", step_count=7)
    assert run(tmp_path / "data") == 1
    printed = capsys.readouterr().out
    assert f"episodes/{gone.name}: no such file" in printed
    assert "episodes/renamed.hdf5: not in the ledger; the next run moves it to orphans/" in printed
    assert "step_count 7, but 40 in the ledger" in printed


def test_two_files_that_changed_places_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    one, other = sorted((tmp_path / "data" / "episodes").iterdir())
    one.rename(tmp_path / "aside")
    other.rename(one)
    (tmp_path / "aside").rename(other)
    assert run(tmp_path / "data") == 1
    assert capsys.readouterr().out.count("expected sort_trash-") == 2


def test_a_ledger_row_that_lies_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    with sqlite3.connect(tmp_path / "data" / "ledger.sqlite") as connection:
        connection.execute("UPDATE attempts SET byte_count = byte_count + 1 WHERE idx = 0")
    connection.close()
    assert run(tmp_path / "data") == 1
    assert ", expected " in capsys.readouterr().out


def test_a_folder_without_a_dataset_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no dataset here"):
        run(tmp_path)


def test_layouts_and_plans_are_made_again_from_their_seeds(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tiny, again=2, as_json=True) == 0
    found = json.loads(capsys.readouterr().out)["recomputed"]
    names = [path.stem for path in sorted((tiny / "episodes").iterdir())]
    assert found == {"equal": [names[0], names[-1]], "problems": [], "notes": []}


def test_an_episode_that_does_not_follow_from_its_seed_is_found_though_its_hash_agrees(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = first(copy)
    edit(path, _flip_action)
    agree(copy, path)
    describe(copy, byte_count=sum(file.stat().st_size for file in (copy / "episodes").iterdir()))
    assert run(copy) == 0
    assert run(copy, again=1) == 1
    printed = capsys.readouterr().out
    assert f"episodes/{path.name}: recomputed from its seed, actions differs by up to" in printed
    assert printed.endswith("1 problem\n")


def test_what_was_made_with_another_version_is_said_and_is_no_fault(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    describe(copy, inputs={"mujoco": "0.0.1"})
    assert run(copy, again=2) == 0
    printed = capsys.readouterr().out
    assert "not recomputed: " in printed and "made with another mujoco (0.0.1, now " in printed
    assert "all is well" in printed


def test_source_hashed_dataset_is_not_recomputed(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    describe(copy, inputs={"skill pick": "83dfdf2ca0d8c064"})
    assert run(copy, again=1) == 0
    printed = capsys.readouterr().out
    assert "which identified components by a hash of their source; recompute it with that version" in printed
    assert "all is well" in printed


@pytest.mark.parametrize("to", ["lerobot", "robomimic", "aloha"])
def test_an_export_is_read_again_against_its_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str) -> None:
    write_dataset(tmp_path / "data")
    export(tmp_path / "data", tmp_path / "out", to=to)
    assert main(["verify", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{to}, 2 episodes: all is well\n"
    path = next(path for path in sorted((tmp_path / "out").rglob("*")) if path.suffix in (".parquet", ".hdf5"))
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    assert main(["verify", str(tmp_path / "out")]) == 1
    assert f"{path.relative_to(tmp_path / 'out')}: the file has changed since the export" in capsys.readouterr().out
