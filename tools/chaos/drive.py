"""Script that runs one specification: ``python drive.py SPEC.json [--serial] [--doom FILE]``.

It prints the end of the run as JSON. ``--doom`` names a file with one failpoint per line: the first supervisor dies at
the first failpoint, its successor at the second, and so on. Each death is reported on standard error.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import sys
from pathlib import Path

import msgspec

from nimbus.runner.cell import launcher
from nimbus.runner.cell.transport.messages import Ended
from nimbus.runner.cell.transport.spec import CellSpec
from tools.chaos.processes import read_json


def main() -> int:
    """Run the specification; return the run's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=Path)
    parser.add_argument("--serial", action="store_true")
    parser.add_argument("--doom", type=Path)
    args = parser.parse_args()
    spec = CellSpec.from_text(args.spec.read_text())
    if args.doom:
        _doom(args.doom)
    try:
        ended = _serial(spec) if args.serial else launcher.run_cell(spec, watch=lambda: _settled(Path(spec.folder)))
    except KeyboardInterrupt:
        ended = Ended(code=130, state="stopped")
    sys.stdout.write(json.dumps(msgspec.structs.asdict(ended)) + "\n")
    return ended.code


def _serial(spec: CellSpec) -> Ended:
    from nimbus.runner.cell.run import run_serial

    stored = run_serial(spec)
    return Ended(code=0, state="done" if stored == spec.target else "short")


def _settled(folder: Path) -> int:
    if not (status := read_json(folder / "status.json")):
        return -1
    return sum(status[name] for name in ("already", "stored", "given_up", "quarantined"))


def _doom(file: Path) -> None:
    """Make every supervisor that starts from now on die at the file's next failpoint."""
    start = launcher._Supervisor.__init__
    last: list[tuple[launcher._Supervisor, str]] = []

    def doomed(self: launcher._Supervisor, spec: CellSpec) -> None:
        _tell_death(*last[-1:])
        failpoint, _, rest = file.read_text().partition("\n")
        file.write_text(rest)
        os.environ["NIMBUS_FAILPOINT"] = failpoint
        start(self, spec)
        last.append((self, failpoint))

    launcher._Supervisor.__init__ = doomed
    atexit.register(lambda: _tell_death(*last[-1:]))


def _tell_death(*last: tuple[launcher._Supervisor, str]) -> None:
    for supervisor, failpoint in last:
        if supervisor.process.returncode == -9 and failpoint:
            sys.stderr.write(f"died at {failpoint}\n")


if __name__ == "__main__":
    sys.exit(main())
