"""``python -m nimbus.runner.editor``: the task editor of a host such as Kit, in lines of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, TextIO

_MOST_LINE = 1 << 24


def main() -> int:
    """Serve until the host closes its end, or is gone."""
    signal.signal(signal.SIGTERM, _leave)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    with tempfile.TemporaryDirectory(prefix="nimbus-editor-") as folder:
        serve(sys.stdin, answers, Path(folder))
    return 0


def _leave(*_: object) -> None:
    """End by the way that removes the folder, and let nothing disturb that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


def serve(requests: TextIO, answers: TextIO, folder: Path) -> None:
    """Answer until there are no more requests.

    Args:
        requests: Lines such as ``{"id": "regions.start.center", "value": "[0.5, 0.1]"}``.
        answers: Takes one screen a line.
        folder: For stages and pictures.
    """
    from nimbus.runner.system.threads import prepare_libraries  # one thread each, before numpy is imported

    prepare_libraries()
    from nimbus.datagen.editor.editor import Editor
    from nimbus.datagen.editor.sketch import Sketch
    from nimbus.datagen.studio.errands import Errands

    turn = threading.Lock()

    def show() -> None:
        with turn, contextlib.suppress(BrokenPipeError):
            answers.write(json.dumps(editor.screen()) + "\n")
            answers.flush()

    editor = Editor(Sketch(folder), folder=Path.cwd(), changed=show)
    errands = Errands(editor.tell, editor.say)
    editor.errands = errands
    show()
    for line in iter(lambda: requests.readline(_MOST_LINE), ""):
        request = _request(line)
        if request is None:
            editor.say("the host said something that is no request")
        else:
            editor.act(str(request["id"]), request.get("value"))
    errands.close()


def _request(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "id" in found else None


if __name__ == "__main__":
    sys.exit(main())
