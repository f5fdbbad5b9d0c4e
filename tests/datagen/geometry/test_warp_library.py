"""Start of Warp: kernels are made from the headers of Warp alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import warp

from nimbus.datagen.geometry.warp_library import start_warp
from nimbus.datagen.splats import nearest


@pytest.mark.skipif(sys.platform != "linux", reason="Warp compiles for GPUs on this system only")
@pytest.mark.parametrize("name", ["builtin.h", "deterministic.h"])
def test_a_kernel_for_a_gpu_has_no_code_of_the_current_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """No GPU is needed to compile for one."""
    start_warp()
    start_warp()
    (tmp_path / name).write_text("#error foreign code")
    monkeypatch.chdir(tmp_path)
    warp.compile_aot_module(nearest, arch=80, module_dir=tmp_path / "made")
    assert list((tmp_path / "made").glob("*.ptx")) or list((tmp_path / "made").glob("*.cubin"))
