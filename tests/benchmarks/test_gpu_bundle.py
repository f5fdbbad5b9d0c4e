"""The bundle for GPU machines: parts, checksums, and the files that a missing part excludes."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import install
from benchmarks.gpu.bundle import (
    COMMON,
    FIRST,
    KEPT,
    LEFT_OUT,
    dependencies,
    find_packages,
    ordered,
    pack,
    pack_sources,
)
from benchmarks.gpu.curobo_wheel import pack_curobo
from benchmarks.gpu.install import BundleError, Manifest, assemble, find_absent, unpack
from benchmarks.gpu.wheels import keep_files, store_uncompressed
from benchmarks.gpu.whole_run import NEEDED
from nimbus.datagen.errors import InputError

PART_SIZE = 1000


@pytest.fixture
def bundle(tmp_path: Path) -> tuple[Path, Manifest]:
    """Sources, a wheel of one package, and a wheel of some 3,000 compressed bytes that spans several parts."""
    sources, wheel, large = tmp_path / "sources.zip", tmp_path / "tool-1.0-py3-none-any.whl", tmp_path / "large-1.whl"
    write_zip(sources, {"nimbus/__init__.py": "answer = 42\n"})
    write_zip(wheel, {"tool/__init__.py": "", "tool-1.0.dist-info/RECORD": ""})
    write_zip(large, {"engine/data": random.Random(0).randbytes(3000).hex()})
    folder = tmp_path / "bundle"
    return folder, pack([sources, wheel, large], folder, part_size=PART_SIZE)


def write_zip(path: Path, files: dict[str, str], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def assembled(folder: Path, target: Path) -> tuple[dict[str, Path], dict[str, str]]:
    manifest = Manifest.from_json((folder / "manifest.json").read_text())
    return assemble(folder, manifest, target, absent=find_absent(folder, manifest))


def test_all_parts_give_the_files_back(bundle: tuple[Path, Manifest], tmp_path: Path):
    folder, manifest = bundle
    paths, left_out = assembled(folder, tmp_path / "out")
    assert not left_out
    assert {name: path.read_bytes() for name, path in paths.items()} == {
        file.name: (tmp_path / file.name).read_bytes() for file in manifest.files
    }
    assert len(manifest.parts) > 2
    assert {part.size for part in manifest.parts[:-1]} == {PART_SIZE}
    assert manifest.parts[-1].size <= PART_SIZE


def test_missing_part_leaves_out_its_files(bundle: tuple[Path, Manifest], tmp_path: Path):
    folder, manifest = bundle
    last = manifest.parts[-1].name
    (folder / last).unlink()
    paths, left_out = assembled(folder, tmp_path / "out")
    assert left_out == {"large-1.whl": f"{last} of the bundle did not arrive"}
    assert set(paths) == {"sources.zip", "tool-1.0-py3-none-any.whl"}


def test_damaged_part_is_not_used(bundle: tuple[Path, Manifest], tmp_path: Path):
    folder, _ = bundle
    content = bytearray((folder / "part-1.bin").read_bytes())
    content[-1] ^= 1
    (folder / "part-1.bin").write_bytes(content)
    _, left_out = assembled(folder, tmp_path / "out")
    assert "part-1.bin of the bundle is damaged" in left_out["large-1.whl"]


def test_known_files_are_not_written_again(bundle: tuple[Path, Manifest], tmp_path: Path):
    folder, manifest = bundle
    known = [file.sha256 for file in manifest.files if file.name != "sources.zip"]
    paths, left_out = assemble(folder, manifest, tmp_path / "out", absent={}, known=known)
    assert (set(paths), left_out) == ({"sources.zip"}, {})


@pytest.mark.parametrize(("field", "problem"), [("size", "larger than the manifest lists"), ("sha256", "is not what")])
def test_file_that_differs_from_the_manifest_is_refused(
    bundle: tuple[Path, Manifest], tmp_path: Path, field: str, problem: str
):
    plain = json.loads(bundle[1].to_json())
    plain["files"][2][field] = 100 if field == "size" else "0" * 64
    with pytest.raises(BundleError, match=problem):
        assemble(bundle[0], Manifest.from_json(json.dumps(plain)), tmp_path / "out", absent={})


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", ".hidden", "a/b", ""])
def test_manifest_names_plain_files_only(bundle: tuple[Path, Manifest], name: str):
    plain = json.loads(bundle[1].to_json())
    plain["files"][0]["name"] = name
    with pytest.raises(BundleError, match="not a file name"):
        Manifest.from_json(json.dumps(plain))


@pytest.mark.parametrize("name", ["../outside.py", "/outside.py", "a/../../outside.py", "a\\..\\outside.py", "a/"])
def test_sources_stay_inside(tmp_path: Path, name: str):
    archive = write_zip(tmp_path / "sources.zip", {"fine.py": "", name: ""})
    with pytest.raises(BundleError, match="not a plain file inside"):
        unpack(archive, tmp_path / "deep/out")
    assert not (tmp_path / "deep").exists()


def test_sources_hold_no_links(tmp_path: Path):
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "sources.zip", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(BundleError, match="not a plain file inside"):
        unpack(tmp_path / "sources.zip", tmp_path / "out")


def test_large_sources_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(install, "_LARGEST_SOURCE", 1 << 20)
    archive = write_zip(tmp_path / "sources.zip", {"bomb.py": "0" * (2 << 20)})
    with pytest.raises(BundleError, match="larger than 1 MiB"):
        unpack(archive, tmp_path / "out")


def test_packages_of_a_wheel(tmp_path: Path):
    files = {"warp/a.py": "", "six.py": "", "warp_lang-1.dist-info/RECORD": "", "warp_lang.libs/a.so": ""}
    assert find_packages(write_zip(tmp_path / "warp_lang-1-py3-none-any.whl", files)) == ("six", "warp")


def test_sources_hold_package_and_suite(tmp_path: Path):
    first, second = pack_sources(tmp_path / "one.zip"), pack_sources(tmp_path / "two.zip")
    assert first.read_bytes() == second.read_bytes()
    names = set(zipfile.ZipFile(first).namelist())
    assert {"nimbus/datagen/render/stacked.py", "nimbus/skills/pick.py", "benchmarks/gpu/recorded.npz"} <= names
    assert {
        "benchmarks/motion_plan.py",
        "tests/support/panda_table.py",
        "tests/support/batch_planners/reference.py",
    } <= names
    places = ("nimbus/", "benchmarks/", "tests/")
    assert not {name for name in names if "__pycache__" in name or not name.startswith(places)}


def test_installer_skips_without_sources(bundle: tuple[Path, Manifest], tmp_path: Path):
    """The installer needs no other file of the project, and exits with 0 if there is nothing to check."""
    done = run_installer(bundle[0], tmp_path / "into")
    assert (done.returncode, done.stderr) == (0, "")
    assert "part-1.bin of the bundle did not arrive" in done.stdout
    assert "every check SKIPPED" in done.stdout


def run_installer(folder: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """Run the installer without its sources, which ends before the suite."""
    script = folder / "install.py"
    script.write_bytes(Path(install.__file__).read_bytes())
    (folder / "part-1.bin").unlink(missing_ok=True)
    line = [sys.executable, "-I", str(script)]
    env = {**os.environ, "HOME": str(into.parent)}
    words = ["--into", str(into)] if into.name != "nimbus-gpu" else []
    return subprocess.run([*line, *words], env=env, capture_output=True, text=True)


def test_default_folder_is_private_and_in_the_home_folder(bundle: tuple[Path, Manifest], tmp_path: Path):
    (home := tmp_path / "home").mkdir()
    for _ in range(2):
        assert run_installer(bundle[0], home / "nimbus-gpu").returncode == 0
    assert stat.S_IMODE((home / "nimbus-gpu").stat().st_mode) == 0o700
    assert not {path.name for path in home.rglob("*") if path.stat().st_mode & 0o077}


@pytest.mark.parametrize("name", ["", "site", "warp", ".."])
@pytest.mark.parametrize("is_foreign", [False, True])
def test_folder_of_others_is_not_used(bundle: tuple[Path, Manifest], tmp_path: Path, name: str, is_foreign: bool):
    """Another user can make the folder first, with a ``sitecustomize.py``, which ran as the user of the installer."""
    into = tmp_path / "home/into"
    (place := into / name).mkdir(parents=True, exist_ok=True)
    if not is_foreign:
        place.chmod(0o777)
    elif os.getuid():
        pytest.skip("only the superuser can give a folder away")
    else:
        os.chown(place, 12345, 12345)
    done = run_installer(bundle[0], into)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"{place.resolve()}: it belongs to another user, or others can write there")


def test_suite_starts_without_the_current_folder(
    bundle: tuple[Path, Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its interpreter imports from the unpacked sources, and pip works in the folder of the installation."""
    folder, seen = bundle[0], []
    monkeypatch.setattr(install, "__file__", str(folder / "install.py"))
    monkeypatch.setattr(sys, "argv", ["install.py", "--into", str(tmp_path / "into")])

    def run(line: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        seen.append((line[1:4], options["cwd"]))
        return subprocess.CompletedProcess(line, 3)

    monkeypatch.setattr(install.subprocess, "run", run)
    mask = os.umask(0o022)
    try:
        assert install.main() == 3
    finally:
        os.umask(mask)
    into = (tmp_path / "into").resolve()
    assert seen == [(["-P", "-m", "pip"], into), (["-P", "-m", "benchmarks.gpu"], into)]


def make_checkout(folder: Path, *, license_text: str = "Apache License\nVersion 2.0") -> Path:
    files = {
        "curobo/__init__.py": "",
        "curobo/motion_planner.py": "answer = 42\n",
        "curobo/_src/kernel.cuh": "// kernel\n",
        "curobo/content/configs/task.yml": "a: 1\n",
        "curobo/content/assets/robot/arm.stl": "mesh",
        "curobo/tests/test_planner.py": "",
        "LICENSE": license_text,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def recorded_files(wheel: Path) -> list[str]:
    """Return the files of a wheel, after a comparison with the list in it."""
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        *rows, own = file.read(names[-1]).decode().splitlines()
        for row in rows:
            name, digest, size = row.split(",")
            found = base64.urlsafe_b64encode(hashlib.sha256(file.read(name)).digest()).decode().rstrip("=")
            assert (digest, int(size)) == (f"sha256={found}", len(file.read(name)))
    assert [row.split(",")[0] for row in (*rows, own)] == names
    return names


def test_wheel_of_curobo_lists_its_files(tmp_path: Path):
    wheel = pack_curobo(make_checkout(tmp_path / "checkout"), tmp_path)
    assert find_packages(wheel) == ("curobo",)
    assert [name for name in recorded_files(wheel) if name.startswith("curobo/")] == [
        "curobo/__init__.py",
        "curobo/_src/kernel.cuh",
        "curobo/content/configs/task.yml",
        "curobo/motion_planner.py",
    ]


@pytest.mark.parametrize("text", ["NVIDIA License: research or evaluation purposes only", ""])
def test_curobo_of_another_license_is_refused(tmp_path: Path, text: str):
    with pytest.raises(InputError, match="its license is not Apache 2.0"):
        pack_curobo(make_checkout(tmp_path / "checkout", license_text=text), tmp_path)


def test_folder_without_curobo_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="not a checkout of cuRobo V2"):
        pack_curobo(tmp_path, tmp_path)


def test_uncompressed_wheel_has_the_same_files(tmp_path: Path):
    wheel = write_zip(tmp_path / "tool-1.0-py3-none-any.whl", {"tool/a.py": "a = 1\n" * 100, "tool/b.py": ""})
    before = {name: zipfile.ZipFile(wheel).read(name) for name in zipfile.ZipFile(wheel).namelist()}
    store_uncompressed(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == before
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}


def test_wheel_with_fewer_files_keeps_its_metadata(tmp_path: Path):
    """Without them the package would have no version; a pattern without a file is an error."""
    files = {"tool/a.py": "a = 1\n", "tool/b.py": "", "tool-1.0.dist-info/METADATA": "Name: tool\n"}
    wheel = write_zip(tmp_path / "tool-1.0-py3-none-any.whl", files | {"tool-1.0.dist-info/RECORD": "old"})
    keep_files(wheel, ["tool/a.*"])
    assert recorded_files(wheel) == ["tool/a.py", "tool-1.0.dist-info/METADATA", "tool-1.0.dist-info/RECORD"]
    with pytest.raises(ValueError, match="has no file tool/c"):
        keep_files(wheel, ["tool/c*"])


def test_packages_of_the_first_checks_come_first(tmp_path: Path):
    """Packages that the machine may have come last."""
    names = ("numpy", "ompl", "glfw", "warp_lang", "newton", "msgspec")
    wheels = [write_zip(tmp_path / f"{name}-1-py3-none-any.whl", {"a": name * size}) for size, name in enumerate(names)]
    assert [wheel.name.split("-")[0] for wheel in ordered(wheels)] == [
        "msgspec",
        "warp_lang",
        "ompl",
        "newton",
        "numpy",
    ]


def test_every_package_of_a_run_is_packed():
    """Requirements are read from the project; none that a run imports is left out."""
    required = {requirement.split(";")[0].split(">")[0].split("[")[0].strip() for requirement in dependencies()}
    assert {"newton", "usd-exchange", "mujoco", "ompl", "h5py", "typer", "example-robot-data"} <= required
    packed = {name.replace("-", "_") for name in required}
    assert not packed & set(LEFT_OUT)
    assert {"warp_lang", "numpy"} <= packed & {*FIRST, *COMMON}
    assert set(KEPT) <= packed
    assert not {name.replace("pxr", "usd_exchange") for name in NEEDED} - packed
