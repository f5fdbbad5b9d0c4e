"""All names of Kit and Isaac Sim that Nimbus uses are in the contract, not deprecated, and called correctly."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT
from tools.contract.cut import PACKAGE, dependencies, kit_files
from tools.contract.kit_behaviour import Kit, played_kit
from tools.contract.names import Contract
from tools.contract.planted import PLANTED, RIGHT
from tools.contract.standin import MissingBehaviorError
from tools.contract.walk import Finding, check

CONTRACT = Contract.load()
COUNT = ROOT / "tools/contract/count.py"


def findings(tmp_path: Path, code: str) -> list[Finding]:
    path = tmp_path / "planted.py"
    path.write_text(code + "\n")
    return check([path], CONTRACT, package=tmp_path)[0]


def test_everything_that_nimbus_uses_of_kit_is_in_the_contract():
    files = kit_files()
    found, used = check(files, CONTRACT, package=PACKAGE)
    assert [f"{finding.path}:{finding.line}: {finding.what}" for finding in found] == []
    assert {path.name for path in files} >= {"extension.py", "window.py"}
    assert used > 100


@pytest.mark.parametrize("wrong", PLANTED)
def test_a_planted_mistake_is_found(tmp_path: Path, wrong: str):
    assert [finding for finding in findings(tmp_path, PLANTED[wrong]) if wrong in finding.what]


def test_the_figures_are_printed_by_a_command():
    words = [sys.executable, str(COUNT)]
    done = subprocess.run(words, capture_output=True, text=True)
    figures = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stdout + done.stderr
    assert (figures["unknown"], figures["deprecated"]) == ("0", "0")
    assert figures["names used"] == figures["names checked"]
    assert figures["planted mistakes found"] == figures["mistakes planted"] == str(len(PLANTED))


def test_right_code_has_no_findings(tmp_path: Path):
    assert findings(tmp_path, RIGHT) == []


def test_the_extension_depends_on_extensions_that_exist_and_stay():
    for name in dependencies():
        assert CONTRACT.has_extension(name), name
        assert not CONTRACT.extensions.get(name, {}).get("deprecated"), name


def test_the_extension_depends_on_what_it_imports_at_its_start():
    modules = {line.split()[1] for path in PACKAGE.glob("nimbus/datagen/kit/*.py") for line in imports_of_kit(path)}
    core = {"omni.ext", "omni.kit.app", "omni.kit.menu.utils", "carb.eventdispatcher", "carb.settings"}
    assert modules - core <= set(dependencies())


def imports_of_kit(path: Path) -> list[str]:
    """Return the lines at the top of a file that import modules of Kit."""
    return [line for line in path.read_text().splitlines() if line.startswith(("import omni.", "import carb."))]


def test_the_tests_inside_kit_name_settings_and_extensions_that_there_are():
    started = tomllib.loads((PACKAGE / "config/extension.toml").read_text())["test"][1]
    settings = json.loads(COUNT.with_name("isaacsim.json").read_text())["settings"]
    named = [word.removeprefix("--").partition("=")[0] for word in started["args"] if word.startswith("--/")]
    assert len(named) > 3 and set(named) <= set(settings)
    assert set(started["dependencies"]) <= set(CONTRACT.known_extensions)


def test_the_extension_names_files_and_modules_that_are_there():
    manifest = tomllib.loads((PACKAGE / "config/extension.toml").read_text())
    package = manifest["package"]
    for field in ("changelog", "readme", "preview_image", "icon"):
        assert (PACKAGE / package[field]).is_file(), field
    for page in manifest["documentation"]["pages"]:
        assert (PACKAGE / page).is_file(), page
    for module in manifest["python"]["module"]:
        assert (PACKAGE / Path(*module["name"].split(".")) / "__init__.py").is_file(), module
    assert manifest["test"][0]["name"] == "startup"


@pytest.fixture
def kit() -> Iterator[Kit]:
    """Make Kit's modules importable."""
    with played_kit() as kit:
        yield kit


def test_names_that_kit_does_not_have_raise_in_the_stand_in(kit: Kit):
    import omni.ui as ui  # pyright: ignore[reportMissingImports]
    import omni.usd  # pyright: ignore[reportMissingImports]

    with pytest.raises(AttributeError, match="contract"):
        ui.Buton  # noqa: B018
    with pytest.raises(AttributeError, match="contract"):
        omni.usd.get_context().get_stag()
    with pytest.raises(AttributeError, match="contract"):
        ui.Label("a").txt = "b"
    with pytest.raises(TypeError, match="colour"):
        ui.Label("a", colour="red")
    with pytest.raises(ModuleNotFoundError):
        import omni.isaac.core  # noqa: F401  # pyright: ignore[reportMissingImports]
    refusal = "close_stage has no behavior in the stand-in, so it cannot be called"
    with pytest.raises(MissingBehaviorError, match=refusal):
        omni.usd.get_context().close_stage()
