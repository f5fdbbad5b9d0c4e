"""Output of a run's progress to a terminal, a file or a pipe; output errors never abort a run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from nimbus.datagen.errors import visible


@contextmanager
def trim_lines(console: Console) -> Iterator[None]:
    """Buffer all output in the context, and write it at the end without trailing spaces."""
    with console.capture() as captured:
        yield
    console.file.write("\n".join(line.rstrip(" ") for line in captured.get().split("\n")))


class TerminalConsole(Console):
    """Console for literal text: no markup, no emoji, and control characters escaped.

    Names, instructions and reasons come from files. Pass styled text as a ``Text``, or with ``style=``.
    """

    def __init__(self, **options: Any) -> None:
        shown_as_it_is: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
        super().__init__(**shown_as_it_is | options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a string to a text, with control characters escaped."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render to segments; control sequences come from rich only, never from text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


class TerminalOutput(TerminalConsole):
    """Console on standard output.

    A reader that closes the pipe, as in ``nimbus run | head``, requests a stop after the work in progress. If a line
    cannot be written, as on a full disk, the run continues without further output.
    """

    def say(self, text: str) -> None:
        """Print a line literally."""
        try:
            self.print(text, soft_wrap=True)
        except OSError:
            self._mute()

    def on_broken_pipe(self) -> None:
        """Request a stop after the work in progress; rich would exit at once."""
        self._mute()
        signal.raise_signal(signal.SIGTERM)

    def _mute(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
        self.quiet = True
