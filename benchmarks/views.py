"""CPU time of a rendered view of consecutive rows, for one checkout or for several in turns.

Run it as ``python benchmarks/views.py [--checkout DIR ...] [--episode FILE] [--case CASE ...]``. The rows are 64
consecutive ones of a stored episode of ``sort_trash``, or of one that is planned here; ``--objects`` adds more objects
to the table. Every checkout renders the same rows in a separate process with its own Python (``DIR/.venv``); all take
turns. A case is ``CAMERAS[,WxH][,K][,none][,rgb]``: camera names joined by ``+``, or ``both``; the image size, if it
differs from the task's; the number of steps K in a stack; ``none`` for no shadows; and ``rgb`` for RGB instead of all
modalities. Times are CPU milliseconds per view over all threads, best and median of the turns. ``--compare`` also
prints the difference between the images of each checkout and those of the first.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODALITIES = ("rgb", "depth", "instance", "semantic", "normals", "boxes_2d", "visibility")


def record(path: Path, *, episode: Path | None, rows: int, objects: int) -> None:
    """Write the input of the renderer: a layout, and poses of all bodies in consecutive rows."""
    import numpy as np

    from benchmarks.rendering import episode as planned
    from nimbus.datagen.files.codec import to_json

    _, layout, trajectory = planned(episode)
    first = max(0, (trajectory.step_count - rows) // 2)
    shown = slice(first, first + rows)
    names, positions, wxyz = trajectory.body_names, trajectory.body_positions[shown], trajectory.body_wxyz[shown]
    model = layout.physical.objects[0]
    for number in range(objects):
        # The objects stand in rows on the table, where the front camera sees them; the wrist camera sees those near the
        # path of the hand.
        place = (0.35 + 0.05 * (number // 8), -0.28 + 0.08 * (number % 8), model.position[2])
        item = replace(model, name=f"more_{number}", position=place)
        layout = replace(layout, physical=replace(layout.physical, objects=(*layout.physical.objects, item)))
        names = (*names, item.name)
        positions = np.concatenate([positions, np.broadcast_to(place, (len(positions), 1, 3))], axis=1)
        wxyz = np.concatenate([wxyz, np.broadcast_to(item.wxyz, (len(wxyz), 1, 4))], axis=1)
    np.savez(path, layout=to_json(layout), names=np.array(names), positions=positions, wxyz=wxyz)


class RowsRenderer:
    """A checkout's renderer with one case's cameras."""

    def __init__(self, rows: Path, case: str) -> None:
        import numpy as np

        read, self.renderer_class, load_assets, load_task = _find_modules()
        file = np.load(rows)
        self.states = tuple(file["names"].tolist()), file["positions"], file["wxyz"]
        layout = read(str(file["layout"]))
        cameras, *options = case.split(",")
        wanted = [camera.name for camera in layout.visual.cameras] if cameras == "both" else cameras.split("+")
        seen = tuple(camera for camera in layout.visual.cameras if camera.name in wanted)
        shadows, stack = "none" not in options, None
        for option in options:
            if option[0].isdecimal() and "x" in option:
                width, height = map(int, option.split("x"))
                seen = tuple(replace(camera, width=width, height=height) for camera in seen)
            elif option.isdecimal():
                stack = int(option)
        assets = load_assets(load_task("sort_trash"))
        settings: dict[str, Any] = {"modalities": ("rgb",)} if "rgb" in options else {}
        self.renderer = self.renderer_class(assets.stage, assets.robot, stack=stack, shadows=shadows, **settings)
        self.renderer.load(replace(layout, visual=replace(layout.visual, cameras=seen)))
        self.cameras = len(seen)

    def render(self) -> list[dict[str, Any]]:
        """Render all rows in stacks."""
        names, positions, wxyz = self.states
        shown, size = [], self.renderer.stack
        for start in range(0, len(positions), size):
            rows = slice(start, start + size)
            shown.append(self.renderer.render(names, positions[rows], wxyz[rows], first_step=start))
        return shown

    def measure(self) -> float:
        """Return the CPU milliseconds per view."""
        start = time.process_time()
        self.render()
        return (time.process_time() - start) / (len(self.states[1]) * self.cameras) * 1e3

    def save(self, path: Path) -> None:
        """Write all images."""
        import numpy as np

        stacks, arrays = self.render(), {}
        for camera in stacks[0]:
            for name in MODALITIES:
                arrays[f"{camera} {name}"] = np.concatenate([getattr(frames[camera], name) for frames in stacks])
        np.savez(path, **arrays)


def _find_modules() -> tuple[Any, Any, Any, Any]:
    """Import the reader of layouts, the renderer and the scene loader of this checkout, or of one before 0.9."""
    try:
        renderer = import_module("nimbus.datagen.render.scene_renderer").SceneRenderer
        codec, layouts = import_module("nimbus.datagen.files.codec"), import_module("nimbus.datagen.episode.layout")
        loader, tasks = import_module("nimbus.datagen.load.scene_loader"), import_module("nimbus.datagen.tasks.task")
        threads = import_module("nimbus.runner.system.threads")
    except ModuleNotFoundError:
        renderer = import_module("nimbus.datagen.render.stacked").StackedRenderer
        codec, layouts = import_module("nimbus.datagen.store.json_text"), import_module("nimbus.datagen.layout")
        loader, tasks = import_module("nimbus.datagen.usd.loader"), import_module("nimbus.datagen.task")
        threads = import_module("nimbus.runner.libraries")
    threads.prepare_libraries()
    return (
        lambda text: codec.from_json(layouts.Layout, text),
        renderer,
        loader.load_assets,
        tasks.load_task,
    )


def serve(rows: Path, cases: list[str]) -> None:
    """Measure a case for each number on standard input; a number with a path saves the case's images instead."""
    renderers = [RowsRenderer(rows, case) for case in cases]
    for renderer in renderers:
        renderer.render()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        number, *path = line.split()
        renderer = renderers[int(number)]
        answers.write(json.dumps(renderer.save(Path(path[0])) if path else renderer.measure()) + "\n")
        answers.flush()


class Checkout:
    """A process that renders with one checkout's code and Python."""

    def __init__(self, folder: Path, rows: Path, cases: list[str]) -> None:
        self.folder = folder
        paths = os.pathsep.join(str(path) for path in (folder / "exts/nimbus.datagen", folder))
        command = [folder / ".venv/bin/python", __file__, "--serve", rows, *(f"--case={case}" for case in cases)]
        environment = os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True)  # noqa: S603

    def ask(self, text: str | None = None) -> str:
        """Return the answer to a line; without a line, the next answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the process has no pipes")
        if text is not None:
            stdin.write(text + "\n")
            stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.folder}: the process ended")
        return answer


def differences(one: Path, other: Path) -> dict[str, str]:
    """Compare images with others: fraction of equal pixels, and the largest difference."""
    import numpy as np

    first, second, found = np.load(one), np.load(other), {}
    for name in first.files:
        a, b = first[name].astype(np.float64), second[name].astype(np.float64)
        away = np.abs(np.nan_to_num(a, nan=-1.0) - np.nan_to_num(b, nan=-1.0))
        away = away.max(axis=-1) if "rgb" in name or "normals" in name else away
        limit = 2.0 if "rgb" in name else 1e-4 if "depth" in name else 0.0
        found[name] = (
            f"equal {np.mean(away == 0):.6f}, within {limit:g} {np.mean(away <= limit):.6f}, max {away.max():g}"
        )
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--checkout", type=Path, action="append", help="folder of a checkout; may be repeated (default: this one)"
    )
    parser.add_argument("--episode", type=Path, help="file of a stored episode of sort_trash")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--objects", type=int, default=0, help="number of objects to add")
    parser.add_argument("--case", action="append", help="case to render (default: front, wrist, both and both,none)")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--compare", action="store_true", help="also compare the images")
    parser.add_argument("--json", type=Path, help="also write the figures to this JSON file")
    parser.add_argument("--keep", type=Path, help="file of the rows; read if it exists, otherwise written")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = options.case or ["front", "wrist", "both", "both,none"]
    if options.serve:
        serve(options.serve, cases)
        return
    sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]
    folders = [folder.resolve() for folder in options.checkout or [ROOT]]
    with tempfile.TemporaryDirectory() as place:
        rows = (options.keep or Path(place) / "rows.npz").resolve()
        if not rows.exists():
            record(rows, episode=options.episode, rows=options.rows, objects=options.objects)
        checkouts = [Checkout(folder, rows, cases) for folder in folders]
        for checkout in checkouts:
            while checkout.ask() != "ready\n":
                pass
        figures: list[dict[str, Any]] = []
        for number, case in enumerate(cases):
            times: list[list[float]] = [[] for _ in checkouts]
            for _ in range(options.turns):
                for checkout, found in zip(checkouts, times, strict=True):
                    found.append(float(checkout.ask(str(number))))
            base_best, base_median = min(times[0]), statistics.median(times[0])
            for folder, found in zip(folders, times, strict=True):
                best, median = min(found), statistics.median(found)
                figures.append({"case": case, "checkout": str(folder), "best_ms": best, "median_ms": median})
                shares = f"{best / base_best:5.2f} {median / base_median:5.2f}"
                sys.stdout.write(f"{case:24}{folder.name:16}best {best:6.2f}  median {median:6.2f} ms  {shares}\n")
                sys.stdout.flush()
            if options.compare:
                paths = [Path(place) / f"{number}-{which}.npz" for which in range(len(checkouts))]
                for checkout, path in zip(checkouts, paths, strict=True):
                    checkout.ask(f"{number} {path}")
                for folder, path in zip(folders[1:], paths[1:], strict=True):
                    for name, text in differences(paths[0], path).items():
                        sys.stdout.write(f"    {folder.name} {name}: {text}\n")
        for checkout in checkouts:
            checkout.process.terminate()
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
