"""The user's skills and conditions are found, and every error in them is one line."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks import plugin_origin
from nimbus.datagen.tasks.plugins import discover
from tests.support.refusals import refusal

GOOD = '''
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import {base}

@register("{kind}", "{name}")
class Mine({base}):
    """Mine."""

    def {method}(self, arm): ...
'''
SKILL = GOOD.format(kind="skill", base="Skill", name="wave", method="run")


@pytest.fixture(autouse=True)
def registry_of_its_own(monkeypatch: pytest.MonkeyPatch):
    discover()
    monkeypatch.setattr(registry, "_components", dict(registry._components))


def test_a_skill_and_a_condition_of_ones_own_are_found(tmp_path: Path):
    (tmp_path / "wave.py").write_text(SKILL)
    (tmp_path / "waved.py").write_text(GOOD.format(kind="predicate", base="Predicate", name="waved", method="failure"))
    (tmp_path / "_shared.py").write_text("this is no Python")
    discover([tmp_path])
    assert "wave" in registry.names("skill") and "waved" in registry.names("predicate")


def test_files_share_code_by_relative_imports(tmp_path: Path):
    (tmp_path / "a_wave.py").write_text(SKILL + "from ._shared import TURNS\nfrom .waved import Mine as Waved\n")
    (tmp_path / "waved.py").write_text(GOOD.format(kind="predicate", base="Predicate", name="waved", method="failure"))
    (tmp_path / "_shared.py").write_text("TURNS = 3\n")
    discover([tmp_path])
    module = sys.modules[registry.lookup("skill", "wave").__module__]
    assert module.TURNS == 3 and module.Waved is registry.lookup("predicate", "waved")
    assert not (tmp_path / "__pycache__").exists()


RANDOMIZER = """
from nimbus.datagen.randomize.base import LayoutRandomization
from nimbus.datagen.registry import register

@register("randomizer", "mine")
class Mine(LayoutRandomization):
    part = "physical"

    def draw(self, draft, streams):
        return {}
"""
WRONG = [
    (RANDOMIZER.replace('    part = "physical"\n', ""), "'mine' does not name the part of a layout; write part ="),
    (
        RANDOMIZER.replace("def draw", "def drew"),
        "randomizer 'mine' has no method 'draw'; write def draw(self, draft,",
    ),
    (RANDOMIZER.replace("(LayoutRandomization)", ""), "randomizer 'mine' is not a LayoutRandomization; derive it from"),
    (
        RANDOMIZER.replace("    part", "    factor = 3\n    part"),
        "a parameter cannot be read: A non-annotated",
    ),
    (
        SKILL.replace('"wave"', '"pick"'),
        "skill 'pick' already exists, in nimbus.skills.pick; give yours another name",
    ),
    (SKILL.replace('"wave"', '"choose"'), "'choose' is a keyword of the task language; give yours another name"),
    ("x = 1\n", 'registers nothing; put @register("skill", "name") before its class'),
    (SKILL + "import no_such_module\n", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
    (SKILL + "from .nothing import X\n", ":10: cannot be imported: ModuleNotFoundError: no file nothing.py in"),
    (SKILL + "from mine import X\n", "No module named 'mine'; write from .mine import …"),
    (SKILL + "raise SystemExit(3)\n", "cannot be imported: SystemExit: 3"),
    ("def run(:\n", ":1: cannot be imported: SyntaxError"),
    (
        SKILL.replace("(Skill)", "").replace("import Skill", "import Predicate"),
        "skill 'wave' is not a Skill; derive it",
    ),
    (
        SKILL.replace("    def", '    main = "what"\n\n    def'),
        "TypeError: Mine.main is 'what', which is not one of its fields",
    ),
    (SKILL.replace("def run", "def go"), ":5: skill 'wave' has no method 'run'; write def run(self, arm): …"),
    (SKILL.replace('"skill"', '"skil"'), ":5: 'wave' is of unknown kind 'skil'; did you mean 'skill'?"),
    (
        SKILL.replace("    def", '    hand = "keep"\n\n    def'),
        "cannot be imported: TypeError: Mine.hand is 'keep'; write",
    ),
    (
        SKILL.replace("    def", '    fails_with = ("No luck",)\n\n    def'),
        "TypeError: Mine.fails_with: 'No luck' is not a reason: write up to 40 letters",
    ),
    ("\nimport nimbus.datagen.nothing\n", ":2: cannot be imported: ModuleNotFoundError"),
    (
        SKILL.replace("    def", "    cup: complex.__class__ | slice\n\n    def"),
        "a parameter of type slice cannot be written",
    ),
]


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_a_file_that_cannot_be_used_is_one_line_and_leaves_nothing(text: str, expected: str, tmp_path: Path):
    (tmp_path / "mine.py").write_text(text)
    before = registry.registered()
    told = refusal(discover, [tmp_path])
    assert expected in told and told.startswith(f"{tmp_path / 'mine.py'}:")
    assert registry.registered() == before
    (tmp_path / "mine.py").write_text(SKILL)  # fixed, it is found by the same process
    discover([tmp_path])
    assert "wave" in registry.names("skill")


def test_a_folder_of_skills_is_one_and_holds_some(tmp_path: Path):
    (tmp_path / "wave.py").write_text(SKILL)
    (tmp_path / "empty").mkdir()
    for path, expected in (
        (tmp_path / "wave.py", f"give its folder: --skills {tmp_path}"),
        (tmp_path / "empty", "no skills"),
    ):
        with pytest.raises(InputError, match=expected) as caught:
            discover([path])
        assert str(caught.value).startswith(f"--skills {path}: ")


def package(folder: Path, text: str) -> Path:
    """Return an installed package with an entry point, as pip installs it."""
    info = folder / "wavers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wavers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nimbus.skills]\nwaving = wavers_skills\n")
    (folder / "wavers_skills.py").write_text(text)
    return folder


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("wavers_skills", None)


def test_an_installed_package_adds_its_skills(installed: Path):
    package(installed, SKILL.replace('"wave"', '"wave_from_a_package"'))
    assert any(entry.name == "waving" for entry in metadata.entry_points(group="nimbus.skills"))
    discover()
    assert "wave_from_a_package" in registry.names("skill")


def test_an_error_in_an_installed_package_has_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (folder := tmp_path / "site-packages").mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(plugin_origin, "_packages", set())
    package(folder, SKILL.replace('"wave"', '"wave_wrongly"').replace("...", "open('/proc/nope')"))
    discover()
    with pytest.raises(FileNotFoundError) as caught:
        registry.lookup("skill", "wave_wrongly")().run(None)
    assert plugin_origin.find_user_frame(caught.value) == f"{folder / 'wavers_skills.py'}:9"
    sys.modules.pop("wavers_skills")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import no_such_module\n", "cannot be imported: ModuleNotFoundError"),
        (SKILL.replace('"wave"', '"place"'), "skill 'place' already exists, in nimbus.skills.place"),
    ],
)
def test_an_installed_package_that_is_broken_is_one_line(text: str, expected: str, installed: Path):
    package(installed, text)
    said = refusal(discover)
    assert said.startswith("wavers, entry point 'waving' of nimbus.skills: ") and expected in said


def test_a_source_that_never_ends_is_refused(tmp_path: Path):
    (tmp_path / "tap.py").symlink_to("/dev/zero")
    assert "tap.py: is not a regular file" in refusal(discover, [tmp_path])
