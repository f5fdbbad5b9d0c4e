"""``python -m nimbus.runner.isaac.editor``: the task editor for a host such as Kit, which exchanges lines of JSON."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Serve until the host closes the pipe or exits."""
    from nimbus.runner.system.threads import prepare_libraries  # one thread per library; set before NumPy is imported

    signal.signal(signal.SIGTERM, _leave)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be taken for an answer
    prepare_libraries()
    from nimbus.datagen.ui.remote.editor_server import serve

    with tempfile.TemporaryDirectory(prefix="nimbus-editor-") as folder:
        serve(sys.stdin, answers, Path(folder))
    return 0


def _leave(*_: object) -> None:
    """Exit normally, so that the cleanup removes the folder; further signals are ignored meanwhile."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
