"""Makes the images of ``docs/studio.md`` and of the README by visits to the studio in a headless Chromium."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
NAMES = {
    "new_1_empty": "studio_new",
    "new_2_regions": "studio_regions",
    "new_3_objects": "studio_objects",
    "new_4_steps": "studio_steps",
    "new_5_ranges": "studio_ranges",
    "new_6_layouts": "studio_layouts",
    "new_7_plan": "studio_plan",
    "new_8_run": "studio_run",
    "sort_2_region": "studio_region",
}
QUALITY = 85


def main() -> int:
    """Run the tests that visit the studio, and shrink their screenshots; with a folder, use its screenshots."""
    if len(sys.argv) > 1:
        return shrink_all(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"NIMBUS_SCREENSHOTS": folder}
        test = ROOT / "tests/datagen/ui/browser/test_browser.py"
        done = subprocess.run([sys.executable, "-P", "-m", "pytest", "-q", "-rs", str(test)], env=env, cwd=ROOT)
        return done.returncode or shrink_all(Path(folder))


def shrink_all(folder: Path) -> int:
    """Save every screenshot of a folder under its name in the docs."""
    for shot, name in NAMES.items():
        shrink(folder / f"{shot}.png", ROOT / "docs/images" / f"{name}.jpg")
    return 0


def shrink(source: Path, path: Path) -> None:
    """Save a screenshot as a small file."""
    Image.open(source).convert("RGB").save(path, quality=QUALITY, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
