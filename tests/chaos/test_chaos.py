from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from chaos import page

RUN = Path(__file__).parent / "run.py"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cells need Linux")
def test_a_short_chaos_loses_doubles_and_harms_nothing(tmp_path: Path):
    found = tmp_path / "chaos.json"
    words = [sys.executable, str(RUN), "--short", "--episodes", "90", "--faults", "60"]
    ended = subprocess.run(
        [*words, "--json", str(found), "--work", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    totals = page.totals(json.loads(found.read_text()))
    assert totals["faults injected"] >= 60
    assert totals["faults detected"] == totals["faults injected"]
