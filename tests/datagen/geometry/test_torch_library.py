"""PyTorch, in a separate environment, executes no library of the current folder; see docs/training.md."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import ROOT

PYTHON = os.environ.get("NIMBUS_TORCH_PYTHON", "")
if not PYTHON:
    pytest.skip("NIMBUS_TORCH_PYTHON names no Python with torch", allow_module_level=True)

LIBRARY = "#include <fcntl.h>\n__attribute__((constructor)) void run(void) { creat(RAN, 0600); }\n"
"""Library that shows that it was executed."""
RECIPES = ("train_act.py", "train_ddp.py", "train_vla.py", "lightning_vla.py")


def ran(folder: Path, *words: object) -> bool:
    """Start Python in a folder; return True if the library in it was executed."""
    (folder / "ran").unlink(missing_ok=True)
    parts = (str(folder.parent / "packages"), str(ROOT / "exts" / "nimbus.datagen"))
    env = os.environ | {"PYTHONPATH": os.pathsep.join(parts)}
    done = subprocess.run([PYTHON, "-P", *map(str, words)], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (folder / "ran").exists()


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a library that PyTorch alone would execute."""
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("torch") / "foreign"
    folder.mkdir()
    (folder.parent / "packages").mkdir()
    (folder.parent / "packages" / "lightning.py").write_text("from torch.nn import Module as LightningModule\n")
    words = [compiler, "-shared", "-fPIC", f'-DRAN="{folder}/ran"', "-xc", "-", "-o", str(folder / "libcuda.so.1")]
    subprocess.run(words, input=LIBRARY, text=True, check=True)
    if not ran(folder, "-c", "import torch"):
        pytest.skip("this PyTorch searches for no library in the current folder, or the driver's library comes first")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("module", ["datagen.geometry.torch_library", "train.checkpoint", "train.vla_policy"])
def test_importing_torch_executes_no_library_of_the_current_folder(foreign: Path, module: str) -> None:
    assert not ran(foreign, "-c", f"import nimbus.{module}, sys; assert 'torch' in sys.modules")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_execute_no_library_of_the_current_folder(foreign: Path, recipe: str) -> None:
    assert not ran(foreign, ROOT / "docs" / "examples" / recipe, "--help")
