"""Damaged user files: tasks, robots with their models, and folders of skills."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from tools.fuzz.mutations import TEXTS, files_of, pick, replace_file, spoil_file, spoil_text
from tools.fuzz.sort import Sort, command

_SKILL = '''"""A skill of a user's own."""

import os
import sys
import time

from nimbus.datagen.plugin import Skill, register

{spoilt}

@register("skill", "{name}")
class Tap(Skill):
    """Does nothing."""

    def plan(self, cell):
        return []
'''
_IMPORTS = (
    "os._exit(0)",
    "os._exit(3)",
    "sys.exit(0)",
    "raise SystemExit",
    "raise KeyError('x')",
    "raise InputError('x')",
    "while True: pass",
    "while True:\n    try:\n        time.sleep(1)\n    except Exception:\n        pass",
    "os.execv('/bin/true', ['true'])",
    "def f(): return f()\nf()",
    "x = 1 +",
    "\tx = 1",
    "import no_such_module",
    "from nimbus.datagen.plugin import no_such_name",
    "x = '\\x00'",
    "Skill = 3",
    "sys.stdout.write('\\x1b]0;fuzz\\x07'[:0])",
    "raise ValueError('\\x1b]0;fuzz\\x07')",
    "register = None",
    "class Tap: pass",
)


def make_tasks(folder: Path) -> None:
    """Copy Nimbus's tasks, and add a task with its own robot."""
    from nimbus.datagen.files.scene_files import scene_folder

    shutil.copytree(scene_folder("tasks"), folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))


def spoil_task(folder: Path, random: np.random.Generator) -> str:
    """Damage the text of one task, up to three times."""
    path = pick(files_of(folder, ".yaml"), random)
    for other in files_of(folder, ".yaml"):
        if other != path:
            other.unlink()
    if random.random() < 0.1:
        return f"{path.name} is a {replace_file(path, random)}"
    if random.random() < 0.1:
        spoil_file(path, random)
        return f"bytes of {path.name}"
    text = path.read_text()
    for _ in range(int(random.integers(1, 4))):
        text = spoil_text(text, random)
    path.write_text(text, errors="replace")
    return path.name


def read_task(folder: Path, random: np.random.Generator) -> None:
    """Load a task, sometimes with its scene, robot and objects."""
    from nimbus.datagen.load.scene_loader import load_assets
    from nimbus.datagen.tasks.task import load_task

    path = next((path for path in folder.iterdir()), folder / "gone.yaml")
    task = load_task(path)
    if random.random() < 0.1:
        load_assets(task)


def make_robots(folder: Path) -> None:
    """Write one robot with a URDF model and one with an MJCF model."""
    from tests.datagen.robots.test_mjcf import ARM
    from tests.support.six_joint_robot import robot_file

    folder.mkdir()
    (folder / "arm.xml").write_text(ARM)
    (folder / "of_mjcf.yaml").write_text(robot_file("of_mjcf", model="arm.xml"))
    (folder / "arm.urdf").write_text(_urdf())
    (folder / "of_urdf.yaml").write_text(robot_file("of_urdf", model="arm.urdf"))


def _urdf() -> str:
    """Return the URDF of a six-joint arm with a two-finger hand."""
    links = ["base", "a", "b", "c", "d", "e", "palm"]
    solid = '<geometry><box size="0.05 0.05 0.1"/></geometry>'
    weight = '<mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    body = f"<inertial>{weight}</inertial><visual>{solid}</visual><collision>{solid}</collision>"
    parts = [f'<link name="{name}">{body}</link>' for name in (*links, "finger_l", "finger_r")]
    limit = '<limit lower="-2.9" upper="2.9" velocity="2" effort="50"/>'
    for number, (parent, child) in enumerate(zip(links, links[1:], strict=False), start=1):
        ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="0 0 0.15" rpy="0 0 0"/>'
        axis = "0 0 1" if number in (1, 4, 6) else "0 1 0"
        parts.append(f'<joint name="j{number}" type="revolute">{ends}<axis xyz="{axis}"/>{limit}</joint>')
    for name, finger, sign in (("left", "finger_l", 1), ("right", "finger_r", -1)):
        ends = f'<parent link="palm"/><child link="{finger}"/><origin xyz="0 {0.01 * sign} 0.06"/>'
        mimic = '<mimic joint="left" multiplier="1"/>' if name == "right" else ""
        limit = '<limit lower="0" upper="0.04" velocity="0.2" effort="20"/>'
        parts.append(f'<joint name="{name}" type="prismatic">{ends}<axis xyz="0 {sign} 0"/>{limit}{mimic}</joint>')
    return '<robot name="arm">\n' + "\n".join(parts) + "\n</robot>\n"


def spoil_robot(folder: Path, random: np.random.Generator) -> str:
    """Damage a robot file or its model."""
    path = pick(files_of(folder), random)
    if random.random() < 0.08:
        return f"{path.name} is a {replace_file(path, random)}"
    if path.suffix == ".urdf" and random.random() < 0.3:
        return _spoil_tree(path, random)
    text = path.read_text()
    for _ in range(int(random.integers(1, 3))):
        text = spoil_text(text, random)
    path.write_text(text, errors="replace")
    return path.name


def _spoil_tree(path: Path, random: np.random.Generator) -> str:
    text = path.read_text()
    count = int(pick((900, 3000), random))
    chain = "".join(
        f'<link name="x{number}"/><joint name="f{number}" type="fixed">'
        f'<parent link="{f"x{number - 1}" if number else "palm"}"/><child link="x{number}"/></joint>'
        for number in range(count)
    )
    changes = {
        f"a chain of {count} links": ("</robot>", f"{chain}</robot>"),
        "a floating joint": ('type="revolute"', 'type="floating"'),
        "a planar joint": ('type="prismatic"', 'type="planar"'),
        "a mimic of itself": ('<mimic joint="left"', '<mimic joint="right"'),
        "a mimic of nothing": ('<mimic joint="left"', '<mimic joint="nothing"'),
        "a mass of 1e300": ('<mass value="1"', '<mass value="1e300"'),
        "limits of 1e9": ('lower="-2.9" upper="2.9"', 'lower="-1e9" upper="1e9"'),
        "a deep tree": ("</robot>", "<a>" * 20_000 + "</a>" * 20_000 + "</robot>"),
        "entities": (
            '<robot name="arm">',
            '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><robot name="&b;">',
        ),
        "a file as an entity": (
            '<robot name="arm">',
            '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="arm">&a;',
        ),
        "a mesh": ('<box size="0.05 0.05 0.1"/>', f'<mesh filename="{pick(TEXTS, random)[:100]}"/>'),
        "no solids": ("collision>", "colision>"),
        "an encoding": ('<robot name="arm">', '<?xml version="1.0" encoding="utf-32"?><robot name="arm">'),
    }
    name = pick(sorted(changes), random)
    path.write_text(text.replace(*changes[name]), errors="replace")
    return name


def read_robot(folder: Path, random: np.random.Generator) -> None:
    """Load a robot with its meshes and assemble its model, without physics, which would take ten seconds."""
    from nimbus.datagen.robots.mesh_checks import check_meshes
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.robots.urdf import assemble

    path = folder / pick(("of_urdf.yaml", "of_urdf.yaml", "of_mjcf.yaml"), random)
    robot = load_robot(str(path))
    check_meshes(robot)
    assemble(robot.pieces, robot=robot.name)


def make_skills(folder: Path) -> None:
    """Write a folder with a skill."""
    folder.mkdir()
    (folder / "tap.py").write_text(_SKILL.format(name="fuzz_tap", spoilt=""))


def spoil_skills(folder: Path, random: np.random.Generator) -> str:
    """Insert code that runs when the file is imported, or damage its text."""
    path = folder / "tap.py"
    if random.random() < 0.5:
        spoilt = pick(_IMPORTS, random)
        path.write_text(_SKILL.format(name=pick(("fuzz_tap", "pick", "", "all", "{x}"), random), spoilt=spoilt))
        return spoilt
    if random.random() < 0.1:
        return f"tap.py is a {replace_file(path, random)}"
    path.write_text(spoil_text(path.read_text(), random), errors="replace")
    return "tap.py"


def read_skills(folder: Path, random: np.random.Generator) -> None:
    """List the skills, including those of the folder."""
    from nimbus.datagen.tasks import plugin_guard

    plugin_guard.IMPORT_SECONDS = (2.0, 6.0)
    command("skills", "--skills", folder)


SORTS = (
    Sort(name="tasks", make=make_tasks, spoil=spoil_task, read=read_task),
    Sort(name="robots", make=make_robots, spoil=spoil_robot, read=read_robot),
    Sort(name="skills", make=make_skills, spoil=spoil_skills, read=read_skills),
)
