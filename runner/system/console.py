"""The terminal, or the file or pipe in its place, where a run tells how far it is; what becomes of it ends no run."""

from __future__ import annotations

import os
import signal

from rich.console import Console


class TerminalOutput(Console):
    """A console on standard output.

    A reader that goes away, as of ``nimbus run | head``, counts as a wish to stop: what is under way is stored. Where a
    line cannot be written, as on a full disk, the run goes on and says no more.
    """

    def say(self, text: str) -> None:
        """Print a line as it is."""
        try:
            self.print(text, soft_wrap=True, markup=False, highlight=False)
        except OSError:
            self._mute()

    def on_broken_pipe(self) -> None:
        """Stop after what is under way, instead of at once as rich does."""
        self._mute()
        signal.raise_signal(signal.SIGTERM)

    def _mute(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
        self.quiet = True
