"""Output of a run's progress, to the terminal, a file or a pipe; output errors never abort a run."""

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
    """Write everything printed inside at the end, each line without the spaces that pad it."""
    with console.capture() as captured:
        yield
    console.file.write("\n".join(line.rstrip(" ") for line in captured.get().split("\n")))


class TerminalConsole(Console):
    """Console for literal text: no markup, no emoji, and control characters escaped.

    Names, instructions and reasons come from files. Styled text is a ``Text``, or has ``style=``.
    """

    def __init__(self, **options: Any) -> None:
        shown_as_it_is: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
        super().__init__(**shown_as_it_is | options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of a string, as wide as it will be shown."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render to segments of text; those that steer the terminal are rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


class TerminalOutput(TerminalConsole):
    """Console on standard output.

    A reader that closes the pipe, as in ``nimbus run | head``, requests a stop after the work in progress. Where a line
    cannot be written, as on a full disk, the run continues without further output.
    """

    def say(self, text: str) -> None:
        """Print a line as it is."""
        try:
            self.print(text, soft_wrap=True)
        except OSError:
            self._mute()

    def on_broken_pipe(self) -> None:
        """Stop after the work in progress, instead of at once like rich."""
        self._mute()
        signal.raise_signal(signal.SIGTERM)

    def _mute(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
        self.quiet = True
