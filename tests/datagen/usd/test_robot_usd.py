"""A robot's USD file: converted once, and never incomplete."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files import limited_process
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.robots.model_files import MODEL_BYTES
from nimbus.datagen.robots.robot import Robot, load_robot
from nimbus.datagen.robots.urdf import package_folder
from nimbus.datagen.usd import robot as conversion
from nimbus.datagen.usd.robot import robot_hash, robot_usd
from tests.support.refusals import refusal

CONVERT = "from nimbus.datagen.robots.robot import load_robot\nfrom nimbus.datagen.usd.robot import robot_usd\n"
CONVERT += "print(robot_usd(load_robot('panda')))"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a separate cache."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    robot_usd.cache_clear()
    yield tmp_path
    robot_usd.cache_clear()


def path_of(robot: Robot) -> Path:
    return robot_usd(robot)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)


def changed(**fields: object) -> Robot:
    """Return a changed copy of the Panda."""
    panda = load_robot("panda")
    return panda.model_copy(update={"pieces": (panda.pieces[0].model_copy(update=fields),)})


def start() -> subprocess.Popen[str]:
    """Start a conversion in a separate process."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", CONVERT], env=env, stdout=subprocess.PIPE, text=True)


def test_a_robot_is_converted_once(cache: Path, monkeypatch: pytest.MonkeyPatch):
    first = path_of(load_robot("panda"))
    assert first.is_relative_to(cache) and first.stat().st_size > 0
    assert [path.name for path in (cache / "robots").iterdir()] == [f"panda-{robot_hash(load_robot('panda'))}"]
    written = first.stat().st_mtime_ns
    robot_usd.cache_clear()
    monkeypatch.setattr(conversion, "_convert", None)  # would fail if it were called
    assert path_of(load_robot("panda")) == first
    assert first.stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_killed_conversion_leaves_no_robot_and_the_next_one_works(cache: Path):
    process = start()
    deadline = time.monotonic() + 300
    while not list(cache.glob("robots/.convert-*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list(cache.glob("robots/panda-*"))
    assert path_of(load_robot("panda")).is_file()


def test_a_conversion_that_fails_leaves_nothing(cache: Path, tmp_path: Path):
    with pytest.raises(Exception, match=r".+"):
        conversion._convert(changed(package="", urdf=str(tmp_path / "none.urdf")), tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


def test_a_users_robot_is_converted_in_another_process(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = tmp_path / "mine.urdf"
    model.write_text('<robot name="mine"><link name="a"/></robot>')
    monkeypatch.setattr(conversion, "_write", pytest.fail)
    made = path_of(changed(package="", urdf=str(model)))
    assert made.is_relative_to(cache / "robots")
    assert made.stat().st_mode == model.stat().st_mode  # as of any new file, also for other users of a shared cache


def test_the_name_of_a_robot_is_no_path(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    dataset = tmp_path / "dataset"
    dataset.mkdir()
    (dataset / "mine.urdf").write_text('<robot name="/proc/self/cwd/kitchen"><link name="a"/></robot>')
    monkeypatch.chdir(dataset)
    # A new server is started in this folder.
    monkeypatch.setattr(limited_process, "_known", [])
    found = path_of(changed(package="", urdf="mine.urdf"))
    assert found == cache / "robots" / found.parent.name / "panda.usdc"
    assert [path.name for path in dataset.iterdir()] == ["mine.urdf"]
    assert not list(tmp_path.rglob("kitchen*"))


@pytest.mark.parametrize("way", ["path", "link", "material", "mesh", "linked mesh", "link and back"])
def test_images_of_a_users_robot_are_in_its_folder(tmp_path: Path, way: str):
    """They are drawn into datasets, and a robot may come from another user."""
    (tmp_path / "private.png").write_bytes(b"mine")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "link.png").symlink_to("../private.png")
    (tmp_path / "deep/private").mkdir(parents=True)
    (tmp_path / "deep/private.obj").write_text("v 0 0 0")
    (folder / "link.obj").symlink_to("../deep/private.obj")
    (folder / "way").symlink_to("../deep/private")
    (folder / "private.obj").write_text("v 0 0 0")
    (folder / "mesh.obj").write_text("mtllib look.mtl\n")
    (folder / "look.mtl").write_text("newmtl a\nmap_Kd ../private.png\n")
    image = {"path": "../private.png", "link": "link.png"}.get(way, "")
    meshes = {"mesh": "../deep/private.obj", "linked mesh": "link.obj", "link and back": "way/../private.obj"}
    name = meshes.get(way, "mesh.obj" if way == "material" else "")
    shape = f'<mesh filename="{name}"/>' if name else '<sphere radius="1"/>'
    mesh = f"<geometry>{shape}</geometry>"
    look = f'<material name="m"><texture filename="{image}"/></material>' if image else ""
    (folder / "mine.urdf").write_text(f'<robot name="mine"><link name="a"><visual>{mesh}{look}</visual></link></robot>')
    with pytest.raises(InputError, match="is outside of the robot's folder|goes through a link and back"):
        robot_hash(changed(package="", urdf=str(folder / "mine.urdf")))


def test_the_hash_follows_the_images(tmp_path: Path):
    look = '<material name="m"><texture filename="look.png"/></material>'
    visual = f'<visual><geometry><sphere radius="1"/></geometry>{look}</visual>'
    (tmp_path / "mine.urdf").write_text(f'<robot name="mine"><link name="a">{visual}</link></robot>')
    mine = changed(package="", urdf=str(tmp_path / "mine.urdf"))
    hashes = {robot_hash(mine)}
    for content in (b"one", b"two"):
        (tmp_path / "look.png").write_bytes(content)
        hashes.add(robot_hash(mine))
    assert len(hashes) == 3
    with (tmp_path / "look.png").open("wb") as file:
        file.truncate(MODEL_BYTES + 1)
    with pytest.raises(InputError, match="the limit is"):
        robot_hash(mine)


def test_bytes_that_move_to_another_file_change_the_hash(tmp_path: Path):
    """Another robot of the same hash would stand for this one in the cache and in datasets."""
    looks = "".join(f'<material name="m{i}"><texture filename="{i}.png"/></material>' for i in range(2))
    (tmp_path / "mine.urdf").write_text(f'<robot name="mine">{looks}<link name="a"/></robot>')
    mine, hashes = changed(package="", urdf=str(tmp_path / "mine.urdf")), set()
    for contents in ((b"one", b"two"), (b"onet", b"wo")):
        for number, content in enumerate(contents):
            (tmp_path / f"{number}.png").write_bytes(content)
        hashes.add(robot_hash(mine))
    assert len(hashes) == 2


def test_the_hash_follows_the_urdf():
    panda = load_robot("panda")
    piece = panda.pieces[0]
    other = changed(urdf=piece.urdf.replace("panda.urdf", "panda_collision.urdf"))
    same = panda.model_copy(update={"description": "something else"})
    assert robot_hash(same) == robot_hash(panda)
    if (package_folder(piece.package) / other.pieces[0].urdf).is_file():
        assert robot_hash(other) != robot_hash(panda)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"package": "no-such-robots"},
            "robot: the package 'no-such-robots' is not installed; get it from the author of the robot file",
        ),
        (
            {"package": "numpy"},
            "robot: the package 'numpy' has no share/numpy folder; build and source the package's workspace, "
            "or give the path of the file",
        ),
        (
            {"urdf": "robots/none.urdf"},
            "robot panda: urdf: 'robots/none.urdf' is not in the package 'example-robot-data'; "
            "correct the path of the URDF",
        ),
        (
            {"urdf": "robots/../robots/panda_description/urdf/panda.urdf"},
            "robot panda: urdf: 'robots/../robots/panda_description/urdf/panda.urdf' is not in the package "
            "'example-robot-data'; correct the path of the URDF",
        ),
    ],
)
def test_a_missing_package_or_model_is_one_line(fields: dict[str, str], said: str, cache: Path):
    assert refusal(path_of, changed(**fields)) == said


def test_a_link_that_the_model_does_not_have_is_one_line(cache: Path, tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text((scene_folder("robots") / "panda.yaml").read_text().replace("link: panda_hand", "link: panda_hnd"))
    line = "mine.yaml:8:9: tool.link: its URDF has no link 'panda_hnd'; did you mean 'panda_hand'? known: "
    assert line in refusal(load_robot, str(file))
    assert not (cache / "robots").exists()
