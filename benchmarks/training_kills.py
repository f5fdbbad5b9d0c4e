"""Training on several ranks with repeated kills, compared with undisturbed training: weights, losses, and time to
continue.

    NIMBUS_TORCH_PYTHON=~/nimbus-torch/bin/python python benchmarks/training_kills.py [--kills 20] [--steps 300]

A kill ends or stops a rank (SIGKILL, or SIGSTOP to make it hang), ends the process that monitors the ranks (SIGKILL),
or requests that all processes stop (SIGTERM). If the command has ended, it is started again. Then training of 50 steps
in float64 continues with other numbers of ranks. The dataset is synthetic, and the network is small.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from nimbus.datagen.random_streams import generator  # noqa: E402
from tests.support.synthetic import make_rendered, write_dataset  # noqa: E402

SCRIPT = ROOT / "docs/examples/train_ddp.py"
STRIKES = ("kill a rank", "kill a rank", "stop a rank", "kill all", "ask all to stop")


class Command:
    """One training run, which is started again until it is complete."""

    def __init__(self, python: str, folder: Path, out: str, *options: object, ranks: int) -> None:
        self.out, self._folder, self._python = folder / out, folder, python
        self._options, self._ranks = list(map(str, options)), ranks
        self.begin(ranks)

    def begin(self, ranks: int | None = None) -> None:
        """Start the command."""
        self._ranks = ranks or self._ranks
        words = [self._folder / "data", "--out", self.out, "--ranks", self._ranks, "--width", 32, "--depth", 2]
        line = [self._python, str(SCRIPT), *map(str, words), *self._options]
        env = os.environ | {"PYTHONPATH": str(ROOT / "exts/nimbus.datagen")}
        self.process = subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL)

    def step(self, rank: int = 0) -> int:
        """Return the last step of a rank; 0 before the first."""
        try:
            return int((self.out / f"heartbeat-{rank}").read_text() or 0)
        except (OSError, ValueError):
            return 0

    def wait_for(self, step: int) -> None:
        """Wait until a step or the whole run is done."""
        while self.step() < step and self.process.poll() is None:
            time.sleep(0.02)

    def pids(self) -> list[int]:
        """Return the process ids of the ranks."""
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in text.split()]

    def finish(self) -> None:
        """Wait for the end of the command."""
        if code := self.process.wait():
            raise SystemExit(f"the training ended with {code}")

    def losses(self) -> dict[int, float]:
        """Return the loss of each step; if a step was done twice, that of the later one."""
        lines = (self.out / "metrics.jsonl").read_text().splitlines()
        return {line["step"]: line["loss"] for line in map(json.loads, lines)}

    def weights(self) -> str:
        """Return a hash of the last checkpoint and of the policy."""
        paths = [*sorted(self.out.glob("step-*.safetensors")), self.out / "policy/weights.safetensors"]
        return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def strike(command: Command, what: str, number: int) -> float:
    """Inject a fault, and restart the command if it has ended; return the time until the next step [s]."""
    ranks = command.pids()
    for path in command.out.glob("heartbeat-*"):  # any step written from now on is a later one
        path.unlink()
    begin = time.monotonic()
    if what.endswith("a rank") and ranks:
        os.kill(ranks[number % len(ranks)], signal.SIGKILL if what == "kill a rank" else signal.SIGSTOP)
        time.sleep(0.3)  # in this time, the other ranks may complete the current step
        for path in command.out.glob("heartbeat-*"):
            path.unlink()
    else:
        command.process.send_signal(signal.SIGKILL if what == "kill all" else signal.SIGTERM)
        command.process.wait()
        for path in command.out.glob("heartbeat-*"):
            path.unlink()
        command.begin()
    command.wait_for(1)
    return time.monotonic() - begin


def kills(python: str, folder: Path, *, count: int, steps: int) -> bool:
    """Compare the weights of training with kills and of training without."""
    options = ("--steps", steps, "--minutes", 0.01, "--size", 2, "--shown", 1)
    whole = Command(python, folder, "whole", *options, ranks=2)
    whole.finish()
    broken, random, waits, done = Command(python, folder, "broken", *options, ranks=2), generator(0, "kills"), [], 0
    while done < count:
        start = broken.step()
        broken.wait_for(max(start, 1) + int(random.integers(1, max(2, steps // count))))
        if broken.process.poll() is not None:
            break
        what, number = STRIKES[int(random.integers(len(STRIKES)))], int(random.integers(2))
        at = broken.step()
        waits.append(strike(broken, what, number))
        done += 1
        sys.stdout.write(f"{done}: {what} {number} at step {at}, the next step after {waits[-1]:.1f} s\n")
        sys.stdout.flush()
    broken.finish()
    is_equal = whole.weights() == broken.weights()
    found, middle = "equal to the bit" if is_equal else "DIFFERENT", sorted(waits)[len(waits) // 2]
    sys.stdout.write(f"{done} strikes, {steps} steps, 2 ranks: weights {found}; ")
    sys.stdout.write(f"next step after {max(waits):.1f} s at most, {middle:.1f} s in the median\n")
    return is_equal and max(waits) < 30 and done == count


def elastic(python: str, folder: Path) -> bool:
    """Compare the losses of training with changing numbers of ranks with those of one rank."""
    options = ("--steps", 50, "--minutes", 0, "--size", 2, "--shown", 1, "--dtype", "fp64")
    alone = Command(python, folder, "alone", *options, ranks=1)
    alone.finish()
    changed = Command(python, folder, "changed", *options, ranks=2)
    for ranks, until in ((1, 15), (4, 30)):
        changed.wait_for(until)
        changed.process.send_signal(signal.SIGTERM)
        changed.process.wait()
        changed.begin(ranks)
        changed.wait_for(1)
    changed.finish()
    one, other = alone.losses(), changed.losses()
    furthest = max(abs(one[step] - other[step]) for step in range(1, 51))
    sys.stdout.write(f"50 steps in float64 on 2, 1 and 4 ranks: losses differ by {furthest:.1e} from those on 1 rank\n")
    return furthest < 1e-6


def main() -> int:
    """Run both; return 1 if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    python = os.environ.get("NIMBUS_TORCH_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(folder / "data", [make_rendered(row, steps=20) for row in range(6)])
        results = [kills(python, folder, count=args.kills, steps=args.steps), elastic(python, folder)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
