from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import mujoco
import pytest

from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.pipeline import load_pipeline
from nimbus.runner.monitor.dashboard import LOADING
from nimbus.runner.system import threads
from nimbus.runner.system.threads import KERNELS, kernels_are_compiled, load_kernels, prepare_libraries
from tests.support import ROOT
from tests.support.refusals import refusal
from tests.support.runs import RUNNER, TINY, start

SILENT = ("", f"{LOADING}\n")
"""Output of a run before it finds an error; the line appears only on a slow machine."""


WHEN_NUMPY_LOADS = """
import os, sys

class Watch:
    def find_spec(self, name, *_):
        if name == "numpy":
            print(*map(os.getenv, ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")), flush=True)
            os._exit(0)  # what is loaded afterwards takes seconds

sys.meta_path.insert(0, Watch())
"""


@pytest.mark.parametrize("module", ["cell.run", "cell.supervisor", "checks.replay"])
def test_the_shell_does_not_decide_on_threads(module: str):
    code = f"{WHEN_NUMPY_LOADS}\nimport nimbus.runner.{module}, numpy"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    env = os.environ | dict.fromkeys(names, "8") | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "1 1 1\n"


def test_commands_start_with_one_thread_each():
    code = "import os; from nimbus.runner.cli import main; main(['tasks']); print(os.environ['OMP_NUM_THREADS'])"
    env = os.environ | {"OMP_NUM_THREADS": "8", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n1\n")


def test_kernels_are_compiled_once_they_were_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import warp

    prepare_libraries()
    load_kernels("cpu")
    assert kernels_are_compiled("cpu")
    monkeypatch.setattr(warp.config, "kernel_cache_dir", str(tmp_path))
    assert not kernels_are_compiled("cpu")


def test_folder_of_warp_cache_path_takes_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Warp would also take a relative path, and run the machine code in that folder of the current folder."""
    import warp

    prepare_libraries()
    monkeypatch.setattr(warp.config, "kernel_cache_dir", None)
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path))
    prepare_libraries()
    assert warp.config.kernel_cache_dir == str(tmp_path)
    for folder, said in (("kernels", "is a relative path"), (str(tmp_path), "all users can write there")):
        tmp_path.chmod(0o777)
        monkeypatch.setattr(warp.config, "kernel_cache_dir", None)
        monkeypatch.setenv("WARP_CACHE_PATH", folder)
        assert said in refusal(prepare_libraries)
    monkeypatch.delenv("WARP_CACHE_PATH")
    prepare_libraries()
    assert warp.config.kernel_cache_dir == str(cache_folder("warp"))


def test_a_header_of_the_current_folder_is_not_compiled(tmp_path: Path):
    """Warp's compiler would find it before its own, and its code would run in every command that uses kernels."""
    mark = '__attribute__((used)) static const char mark[] = "of the current folder";'
    (tmp_path / "builtin.h").write_text(f"#pragma once\n#include_next <builtin.h>\n{mark}\n")
    code = (
        "import warp\nimport nimbus.datagen.render.boxes as kernels\n"
        "from nimbus.datagen.geometry.warp_library import start_warp\n"
        "start_warp()\nwarp.load_module(kernels, device='cpu')\n"
    )
    environment = os.environ | {"WARP_CACHE_PATH": str(tmp_path / "kernels")}
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    (compiled,) = (tmp_path / "kernels").rglob("*.o")
    assert b"of the current folder" not in compiled.read_bytes()


def test_all_kernels_of_the_renderer_are_compiled_before_work_begins():
    folder = ROOT / "exts" / "nimbus.datagen" / "nimbus" / "datagen"
    sources = [path.relative_to(folder) for path in sorted(folder.rglob("*.py")) if "@wp.kernel" in path.read_text()]
    found = [".".join(path.with_suffix("").parts) for path in sources]
    assert list(KERNELS) == found  # otherwise, they would be compiled in a worker, which looks like a hang


def test_components_may_import_one_kernel_module_alone(monkeypatch: pytest.MonkeyPatch):
    """A component that imports only ``render.boxes`` once ended the run with a KeyError."""
    prepare_libraries()
    missing = "nimbus.datagen.render.raytracer.culling"
    monkeypatch.delitem(sys.modules, missing, raising=False)
    assert missing not in threads._kernel_modules(None)
    load_kernels("cpu")


def test_kernels_of_plug_ins_are_compiled_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The kernels of plug-ins were once compiled at their first use, in a worker that was then ended as hung."""
    code = "import warp as wp\n\n\n@wp.kernel\ndef fill(values: wp.array(dtype=float)):\n    values[wp.tid()] = 1.0\n"
    (tmp_path / "plug_in_with_kernel.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    prepare_libraries()
    importlib.import_module("plug_in_with_kernel")
    try:
        assert "plug_in_with_kernel" in threads._kernel_modules(None)
    finally:
        importlib.import_module("warp._src.context").user_modules.pop("plug_in_with_kernel")
        del sys.modules["plug_in_with_kernel"]


def test_kernels_of_packages_in_another_folder_are_not_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With packages in a folder of ``pip install --target``, a run compiled every kernel of Newton, for minutes."""
    import warp

    code = "import warp as wp\n\n\n@wp.kernel\ndef fill(values: wp.array(dtype=float)):\n    values[wp.tid()] = 1.0\n"
    (tmp_path / "package_with_kernel.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(warp, "__file__", str(tmp_path / "warp" / "__init__.py"))
    importlib.import_module("package_with_kernel")
    try:
        assert "package_with_kernel" not in threads._kernel_modules(None)
    finally:
        importlib.import_module("warp._src.context").user_modules.pop("package_with_kernel")
        del sys.modules["package_with_kernel"]


def kernel_rooms(modules: list[str]) -> set[str]:
    """Return the rooms of the library in a list of modules; other tests of this process may have kernels, too."""
    return {module.split(".")[2] for module in modules if module.startswith("nimbus.")}


@pytest.mark.parametrize(
    ("name", "rooms"),
    [("manipulation", set()), ("nav_mesh", {"navigate"}), ("nav_splat", {"navigate", "splats"})],
)
def test_runs_compile_only_kernels_they_use(name: str, rooms: set[str]):
    prepare_libraries()
    assert kernel_rooms(threads._kernel_modules(load_pipeline(name))) == {"meshes", "render", *rooms}


@pytest.mark.parametrize(("name", "rooms"), [("manipulation", set()), ("nav_splat", {"navigate", "splats"})])
def test_runs_without_cameras_compile_no_renderer(name: str, rooms: set[str]):
    """Compiling once took half a minute in runs without images."""
    prepare_libraries()
    assert kernel_rooms(threads._kernel_modules(load_pipeline(name), has_cameras=False)) == rooms


def test_an_unstable_simulation_leaves_no_file_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.chdir(tmp_path)
    prepare_libraries()
    body = "<body><freejoint/><geom size='0.1'/></body>"
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    data.qvel[0] = 1e30
    with caplog.at_level(logging.DEBUG, logger="nimbus.mujoco"):
        mujoco.mj_step(model, data)
    assert "The simulation is unstable" in caplog.text
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_refused_in_one_line_before_anything_is_loaded(tmp_path: Path):
    env = {"PATH": os.environ["PATH"], "HOME": "/proc"}
    words = ["run", "--task", str(TINY), "--out", str(tmp_path / "data")]
    done = subprocess.run([sys.executable, str(RUNNER), *words], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout in SILENT, done.stderr
    assert done.stderr.startswith("/proc/.cache/nimbus/warp: the cache folder cannot be used (")
    assert done.stderr.count("\n") == 1 and not (tmp_path / "data").exists()


@pytest.mark.slow
def test_a_gpu_that_is_not_there_is_one_line_without_a_word_of_native_code(tmp_path: Path):
    import warp

    if warp.is_cuda_available():
        pytest.skip("there is a GPU")
    process = start("run", "--task", str(TINY), "--device", "cuda", "--out", str(tmp_path / "data"))
    out, error = process.communicate()
    assert (process.returncode, error.count("\n")) == (2, 1) and out in SILENT, error
    assert error.startswith("--device: no device 'cuda' on this machine")
