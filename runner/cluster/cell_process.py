"""Process that runs a node's cell like a run on one machine, and ends when the agent that started it ends."""

from __future__ import annotations

import sys
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.runner.cell.launcher import run_cell
from nimbus.runner.cell.transport.messages import Ended
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.monitor.status import read_status
from nimbus.runner.system.output import write_json
from nimbus.runner.system.processes import die_with_parent


def main(words: list[str]) -> int:
    """Run the spec read from standard input, and print the result as the last line: ``cell_process PARENT_PID``."""
    die_with_parent(int(words[0]))
    spec = CellSpec.from_text(sys.stdin.read())
    folder = Path(spec.folder)

    def watch() -> int:
        try:
            status = read_status(folder)
        except InputError:
            return -1
        return status.settled if status else -1

    ended = run_cell(spec, watch=watch)
    write_json(structure(ended), indent=None)
    return ended.code


def structure(ended: Ended) -> dict[str, object]:
    """Return the result of a cell as plain values."""
    return {"code": ended.code, "state": ended.state, "line": ended.line}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
