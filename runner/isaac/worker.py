"""Worker inside an instance of Isaac Sim: starts Kit, then runs like any other worker of the cell.

Kit is imported first, so that everything after it uses Kit's libraries.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from nimbus.datagen.errors import InputError
from nimbus.datagen.simulate.kit_app import start
from nimbus.runner.cell.transport.spec import CellSpec, Instances
from nimbus.runner.cell.worker.heartbeat import HeartbeatPage
from nimbus.runner.isaac.instance import ROOT_WORD
from nimbus.runner.isaac.shared_memory import note_shared_memory
from nimbus.runner.system.processes import die_with_parent, ignore_stop_signals


def main(words: list[str]) -> NoReturn:
    """Work for this process's supervisor, then exit without waiting for Kit to close.

    Args:
        words: The spec, the handover, numbers as JSON (row, GPU, threads, descriptors of the channel, slots and
            heartbeats); then Kit's own arguments.
    """
    text, handover, numbers, *kits = words
    row, gpu, threads, *descriptors = json.loads(numbers)
    die_with_parent(os.getppid())
    ignore_stop_signals()
    stamp = HeartbeatPage.attach(os.dup(descriptors[-1])).writer(row)
    stamp.phase("start")
    sys.argv[1:] = kits  # Kit reads sys.argv too, and would reject Nimbus's arguments
    refusal: InputError | None = None
    try:
        app = start(gpu=gpu, threads=threads)
    except InputError as error:
        app, refusal = None, error
    else:
        note_shared_memory(Path(kits[kits.index(ROOT_WORD) + 1]))
    spec = _spec(text)
    _add_libraries(spec.instances)
    code = _work(spec, handover, refusal, row=row, descriptors=descriptors)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    del app  # not closed, because closing may hang; all results are stored
    os._exit(code)


def _spec(text: str) -> CellSpec:
    """Read the specification without the libraries that validate it, which are not importable yet."""
    libraries = json.loads(text)["instances"]["libraries"]
    _add_libraries(Instances(libraries=tuple(libraries)))
    return CellSpec.from_text(text)


def _add_libraries(instances: Instances) -> None:
    """Append the installation's folders to the import path, after Isaac Sim's own."""
    sys.path += [path for path in instances.libraries if path not in sys.path and Path(path).is_dir()]


def _work(spec: CellSpec, handover: str, refusal: InputError | None, *, row: int, descriptors: list[int]) -> int:
    from nimbus.runner.cell.worker import main_loop
    from nimbus.runner.isaac.job import Job, render_job

    def load() -> Job:
        if refusal:
            raise refusal
        return render_job(spec, handover)

    return main_loop.main(load, Path(spec.folder), row=row, descriptors=descriptors)


if __name__ == "__main__":
    main(sys.argv[1:])
