"""Makes the pictures of ``docs/studio.md`` by visiting the studio in a headless Chromium."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
NAMES = {
    "1_task": "studio_task",
    "2_region": "studio_region",
    "3_steps": "studio_steps",
    "4_range": "studio_ranges",
}
QUALITY = 85


def main() -> int:
    """Run the test that visits the studio, and shrink what it saw."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"NIMBUS_SCREENSHOTS": folder}
        test = ROOT / "tests/datagen/studio/test_browser.py"
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", str(test)], env=env, cwd=ROOT)
        if done.returncode:
            return done.returncode
        for shot, name in NAMES.items():
            shrink(Path(folder) / f"{shot}.png", ROOT / "docs/images" / f"{name}.jpg")
    return 0


def shrink(source: Path, path: Path) -> None:
    """Save a screenshot as a small file."""
    Image.open(source).convert("RGB").save(path, quality=QUALITY, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
