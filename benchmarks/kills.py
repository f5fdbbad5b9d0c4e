"""SIGKILL in the middle of runs, exports and conversions: number of lost, torn and different files at the end.

    python benchmarks/kills.py [--kills 150] [--json FILE]

Each of the three gets a third of the kills. Most processes are killed at a chosen file operation (``tests/dying.py``).
The operations are spread evenly over a command, and a write is interrupted in the middle. Every other dataset is
interrupted twice in this way. Other commands are killed with all their processes at random moments: runs of several
processes, and exports and conversions whose files are written inside libraries."""  # noqa: D208

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from nimbus.datagen.datasets.export.formats import FORMATS  # noqa: E402
from nimbus.datagen.datasets.export.publication import stage_of  # noqa: E402
from nimbus.datagen.store.verify import dataset_hashes, verify  # noqa: E402
from tests.support.cells import Run, make_spec, tagged, until  # noqa: E402
from tests.support.dying import Dying  # noqa: E402
from tests.support.foreign import write_v21  # noqa: E402
from tests.support.kill_checks import Publication, SerialRun, Tally, done_in  # noqa: E402
from tests.support.reading import tree  # noqa: E402
from tests.support.synthetic import make_rendered, write_dataset  # noqa: E402

RUNNER = ROOT / "runner" / "runner.py"
EPISODES = 10


def cells_at_moments(folder: Path, count: int, moments: random.Random) -> Tally:
    """Kill runs of planner and renderer processes as a whole at random moments until they are done."""
    tally = Tally()
    clean = make_spec(folder / "clean", episodes=EPISODES)
    Run(clean).end(patience=300.0)
    whole = dataset_hashes(folder / "clean")
    while tally.kills < count:
        spec = make_spec(folder / "killed", episodes=EPISODES)
        known: set[str] = set()
        while len(known) < EPISODES and tally.kills < count:
            run = Run(spec)
            wanted = min(EPISODES, len(known) + moments.randint(1, 4))
            until(lambda: len(done_in(folder / "killed")) >= wanted or run.process.poll() is not None, patience=120.0)  # noqa: B023
            time.sleep(moments.uniform(0, 0.2))
            tally.kills += run.process.poll() is None
            run.kill()
            run.process.communicate()
            until(lambda: not tagged(spec), patience=30.0)  # noqa: B023
            now = done_in(folder / "killed")
            tally.lost += len(known - now)
            known |= now
        done = Run(spec).end(patience=300.0)
        tally.lost += len(known - done_in(folder / "killed"))
        tally.torn += len(verify(folder / "killed").problems)
        tally.different += done.code != 0 or dataset_hashes(folder / "killed") != whole
        shutil.rmtree(folder / "killed")
    return tally


def commands_at_moments(words: list[str], folder: Path, count: int, moments: random.Random) -> Tally:
    """Kill a command at random moments after its stage folder exists; the folder stays between kills."""
    tally, out = Tally(), folder / "out"
    begin = time.monotonic()
    subprocess.run([*_line(words), "--out", str(folder / "whole")], check=True, stdout=subprocess.DEVNULL)
    lasts, whole = time.monotonic() - begin, tree(folder / "whole")
    while tally.kills < count:
        process = subprocess.Popen([*_line(words), "--out", str(out)], stdout=subprocess.DEVNULL)
        until(lambda: (stage_of(out) / "tree").exists() or process.poll() is not None, patience=120.0)  # noqa: B023
        time.sleep(moments.uniform(0, lasts / 2))
        process.send_signal(signal.SIGKILL)
        tally.kills += process.wait() == -signal.SIGKILL
        tally.torn += out.exists() and tree(out) != whole
        if out.exists():
            subprocess.run([*_line(words), "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
            tally.different += tree(out) != whole
            shutil.rmtree(out)
        shutil.rmtree(stage_of(out) / "tree", ignore_errors=True)
    subprocess.run([*_line(words), "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
    tally.different += tree(out) != whole
    return tally


def _line(words: list[str]) -> list[str]:
    return [sys.executable, str(RUNNER), *words]


def _share(kills: int, part: int, of: int) -> int:
    return -(-kills * part // of)


def measure(folder: Path, kills: int) -> dict[str, Tally]:
    """Make a number of kills, a third of each kind."""
    found: dict[str, Tally] = {}
    third, moments = -(-kills // 3), random.Random(0)
    write_dataset(folder / "stored", [make_rendered(row, steps=20 + row) for row in range(6)])
    write_v21(folder / "foreign", [12 + row for row in range(8)])
    write_dataset(folder / "long", [make_rendered(row, steps=60, width=160, height=120) for row in range(6)])

    def place(name: str) -> Path:
        (folder / name).mkdir()
        return folder / name

    with Dying() as dying:
        found["run, at operations"] = SerialRun(dying, place("run")).kill(_share(third, 3, 4))
        for to in FORMATS:
            words = ("export", str(folder / "stored"), "--to", to)
            found[f"export {to}, at operations"] = Publication(dying, words, place(to)).kill(
                _share(third, 4, 5 * len(FORMATS))
            )
        for to in ("lerobot", "lerobot-v2.1"):
            words = ("convert", str(folder / "foreign"), "--to", to, "--episode-size", "3")
            found[f"convert {to}, at operations"] = Publication(dying, words, place(f"from-{to}")).kill(
                _share(third, 2, 5)
            )
    found["run of several processes, at moments"] = cells_at_moments(place("cells"), _share(third, 1, 4), moments)
    words = ["export", str(folder / "long")]
    found["export lerobot, at moments"] = commands_at_moments(words, place("moments"), _share(third, 1, 5), moments)
    words = ["convert", str(folder / "foreign"), "--episode-size", "2"]
    found["convert lerobot, at moments"] = commands_at_moments(words, place("moments2"), _share(third, 1, 5), moments)
    return found


def main() -> int:
    """Print a table; return 1 if anything was lost, torn or different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=150)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name), args.kills)
    total = Tally(**{key: sum(getattr(one, key) for one in found.values()) for key in asdict(Tally())})
    for name, one in (found | {"all": total}).items():
        row = f"{one.kills:4} kills at {one.places or '-':>4} places"
        sys.stdout.write(f"{name:38} {row}  lost {one.lost}  torn {one.torn}  different {one.different}\n")
    if args.json:
        args.json.write_text(json.dumps({name: asdict(one) for name, one in found.items()}, indent=1) + "\n")
    return 0 if total.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
