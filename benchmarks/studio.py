"""Times of the studio in a headless Chromium: first view, scrubbing, 50 layouts. Prints a table, and merges it into a
JSON file.

Run it as ``python benchmarks/studio.py [--size W H] [--sharpness PERCENT] [--json FILE]``, with the extra
``studio`` and a Chromium.
The page is rendered on the CPU, without a GPU. CPU seconds of the browser are listed with the times.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from tests.support.studio.browser import Browser  # noqa: E402
from tests.support.studio.visit import served  # noqa: E402

COUNT_FRAMES = """
window.frames_drawn = 0; window.most_calls = 0; let calls = 0;
for (const name of ['drawElements', 'drawArrays', 'drawElementsInstanced', 'drawArraysInstanced']) {
  const before = WebGL2RenderingContext.prototype[name];
  WebGL2RenderingContext.prototype[name] = function(...words) { calls += 1; return before.apply(this, words); };
}
const tick = () => {
  if (calls) { window.frames_drawn += 1; window.most_calls = Math.max(window.most_calls, calls); calls = 0; }
  requestAnimationFrame(tick);
};
requestAnimationFrame(tick);
"""
ROBOT_CALLS = 20
"""Number of draw calls of a frame that shows the robot and its table."""
SCRUB_SECONDS = 10.0


def cpu_seconds(folder: Path) -> float:
    """Return the CPU-seconds of all processes with a folder as profile."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                ticks += sum(map(int, (entry / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        except OSError:
            continue  # it ended meanwhile
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(size: tuple[int, int], *words: str) -> dict[str, Any]:
    """Measure all figures in one visit of the page."""
    figures: dict[str, Any] = {"size": size, "cores": os.cpu_count()}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name, served(Path(name), "sort_trash", "--port", "8400", *words) as address:
        figures["start [s]"] = round(time.monotonic() - begin, 1)
        browser = Browser(Path(name), size=size)
        try:
            browser.send("Page.addScriptToEvaluateOnNewDocument", source=COUNT_FRAMES)
            time.sleep(15.0)  # the server loads the scene, as for every visitor but the first
            begin = time.monotonic()
            browser.open(address)
            browser.wait_for("Nothing to save")
            while browser.run("window.most_calls") < ROBOT_CALLS:
                time.sleep(0.02)
            figures["first view [s]"] = round(time.monotonic() - begin, 1)
            browser.settle("ready")
            browser.dismiss()
            browser.tab("Layouts")
            browser.click("Sample 50")
            browser.wait_for("50 layouts in", within=300)
            found = re.search(r"50 layouts in ([\d.]+) s", browser.text())
            figures["50 layouts [s]"] = float(found[1]) if found else None
            browser.click("Plan one")
            browser.settle("Success", within=300)
            figures |= scrub(browser, Path(name), "with 50 layouts marked")
            browser.click("Clear")
            figures |= scrub(browser, Path(name), "without")
        finally:
            browser.close()
    return figures


def scrub(browser: Browser, folder: Path, what: str) -> dict[str, float]:
    """Drag the scrubber back and forth; return the frame rate and the browser's CPU time per frame."""
    browser.run("window.frames_drawn = 0; null")
    begin, cpu = time.monotonic(), cpu_seconds(folder)
    track = "document.querySelector('.mantine-Slider-track').getBoundingClientRect()"
    left, y, width = browser.run(f"(box => [box.x, box.y + box.height / 2, box.width])({track})")
    browser.press(left + 1, y)
    step = 0
    while time.monotonic() - begin < SCRUB_SECONDS:
        step += 1
        share = abs((step / 120) % 2 - 1)
        browser.hold(left + share * width, y)
        time.sleep(0.02)
    browser.release(left + width / 2, y)
    seconds, frames = time.monotonic() - begin, browser.run("window.frames_drawn")
    return {
        f"scrubbing {what} [frames/s]": round(frames / seconds, 1),
        f"a frame {what} [s CPU of the browser]": round((cpu_seconds(folder) - cpu) / max(1, frames), 3),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, nargs=2, default=(1200, 780), metavar=("W", "H"))
    parser.add_argument("--sharpness", help="sharpness, as in `nimbus studio`")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    figures = measure((args.size[0], args.size[1]), *(["--sharpness", args.sharpness] if args.sharpness else []))
    for name, value in figures.items():
        sys.stdout.write(f"{name:>52}  {value}\n")
    if args.json:
        known = json.loads(args.json.read_text()) if args.json.exists() else {}
        args.json.write_text(json.dumps(known | {"studio": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
