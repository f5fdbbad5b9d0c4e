"""Command line: finds the command, and turns errors into one line and an exit code.

Imports are kept light: the help is written from a table, and only the requested command is imported.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from nimbus.datagen.errors import BUG, InputError, single_line, suggest
from nimbus.datagen.tasks.plugin_origin import user_frame_line
from nimbus.runner.commands import COMMANDS, PANELS
from nimbus.runner.system.memory_limit import READERS, limit_memory, memory_complaint
from nimbus.runner.system.output import error_line, write_error, write_out

if TYPE_CHECKING:
    from typer._click.core import Context

OWN = 1
INTERRUPTED = 130
_HELP = ("-h", "--help")
_REFUSALS = {
    errno.ENAMETOOLONG: "give a shorter path",
    errno.ELOOP: "remove the link that leads back to itself",
    errno.EACCES: "give a path that you are permitted to use",
    errno.EPERM: "give a path that you are permitted to use",
    errno.EROFS: "give a path on a writable disk",
    errno.EIO: "check the disk and its connection",
}
"""Operating-system errors about a path that the user can fix, each with its fix."""
_LONGEST_PATH = 200
"""Largest number of characters of a path in an error message."""

_BEGINNING = """usage: nimbus COMMAND [FLAGS], or nimbus FLAGS, which is nimbus run FLAGS

Generates a verified set of robot demonstrations from a short task file.

options:
  -h, --help       show this help; after a command: its flags
  --version        print the version
"""

_EXIT_CODES = """
exit codes:
  0    done
  1    incomplete, a check failed, or an error in your own plug-in (its location is printed)
  2    invalid input (one line describes it)
  70   a bug in Nimbus (the traceback is printed)
  130  interrupted (Ctrl-C or SIGTERM)
"""


def open_closed_streams() -> None:
    """Redirect closed streams (``>&-``) to the null device, so that no data file gets their descriptors."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    sys.stdout = sys.stdout or open(1, "w", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the terminal may lack characters of file names


def drop_output() -> None:
    """Redirect standard output to the null device, so that the interpreter's last flush raises no error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def output_complaint(error: Exception) -> str:
    """Return the message for a full disk behind standard output, or an empty text for other errors."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return ""
    try:
        sys.stdout.flush()
    except OSError:
        drop_output()
    return f"{error.filename or 'standard output'}: no space left on device; write it where there is room"


def path_complaint(error: Exception) -> str:
    """Return the message for a path that the operating system refuses, or an empty text for other errors."""
    if not isinstance(error, OSError) or error.errno not in _REFUSALS or error.filename is None:
        return ""
    name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else str(error.filename)
    short = name if len(name) <= _LONGEST_PATH else f"{name[:_LONGEST_PATH]}…"
    return f"{short}: {(error.strerror or '').lower()}; {_REFUSALS[error.errno]}"


def report_crash(error: Exception, *, in_full: bool = False) -> int:
    """Report an internal error; return the exit code.

    Args:
        error: The error, which is being handled.
        in_full: True to print the traceback even if one line can name the faulty code.
    """
    own = user_frame_line(error)
    if in_full or not own:
        traceback.print_exception(error)
    if own:
        write_error(single_line(own) + "\n")
    return OWN if own else BUG


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    open_closed_streams()
    is_whole_process = words is None
    if words is None:
        # Libraries start interpreters, which would import from the current folder; it may be a dataset of others.
        os.environ["PYTHONSAFEPATH"] = "1"
        words = sys.argv[1:]
    try:
        code = _obey(words, limits_files=is_whole_process)
        sys.stdout.flush()
        return code
    except InputError as error:
        notes = "".join(f" ({note})" for note in (*getattr(error, "__notes__", ()), *_hint_at_limits(str(error))))
        write_error(error_line(f"{error}{notes}"))
        return error.exit_code
    except KeyboardInterrupt:
        write_error("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output has closed the pipe
        drop_output()
        return 1
    except Exception as error:
        if isinstance(error, MemoryError) and (line := memory_complaint()):
            write_error(line + "\n")
            return InputError.exit_code
        if line := output_complaint(error):
            write_error(line + "\n")
            return 1
        if line := path_complaint(error):
            notes = "".join(f" ({note})" for note in _hint_at_limits(line))
            write_error(error_line(f"{line}{notes}"))
            return InputError.exit_code
        return report_crash(error, in_full="--serial" in words)


def _hint_at_limits(line: str) -> Iterator[str]:
    """Yield a remedy for an error about a file that may lie outside the limits of a command."""
    if "permission denied" in line.lower():
        from nimbus.datagen.files.access_limits import is_limited

        if is_limited():
            yield "this command opens only files that it names; NIMBUS_READ_FOLDERS names more folders"


def parse_command(words: Sequence[str]) -> Context | None:
    """Parse and check the words of a command; return None if its help was requested, which is then printed.

    Raises:
        InputError: A flag or value is wrong.
    """
    name, rest = ("run", words) if words[0].startswith("--") else (words[0], words[1:])
    if name.startswith("-"):
        raise InputError("unknown flag", where=name, instead=suggest(name, ("--help", "--version")))
    if name not in COMMANDS:
        raise InputError(f"unknown command '{name}'", instead=suggest(name, COMMANDS))
    from nimbus.runner.commands.parser import parse  # imports Typer, which the help does not need

    function: Callable[..., int] = importlib.import_module(f"nimbus.runner.commands.{name.replace('-', '_')}").command
    return parse(function, rest, name=name, meaning=COMMANDS[name])


def parameters(context: Context) -> dict[str, object]:
    """Return the parameters of a parsed command by name, with addresses as texts."""
    from nimbus.runner.commands.parser import DatasetAddress

    given = context.params.items()
    return {name: value.text if isinstance(value, DatasetAddress) else value for name, value in given}


def help_text() -> str:
    """Return the help of ``nimbus`` itself: its commands, grouped into panels."""
    return "\n".join((_BEGINNING, *_panels(), _EXIT_CODES.lstrip("\n")))


def _panels() -> Iterator[str]:
    width = max(map(len, COMMANDS))
    for panel, commands in PANELS.items():
        yield f"{panel}:"
        yield from (f"  {name:<{width}}  {meaning}" for name, meaning in commands.items())
        yield ""


def _obey(words: Sequence[str], *, limits_files: bool = False) -> int:
    if not words or words[0] in _HELP:
        write_out(help_text())
        return 0
    if words[0] == "--version":
        from nimbus.datagen.version import nimbus_version

        write_out(f"nimbus {nimbus_version()}\n")
        return 0
    context = parse_command(words)
    if context is None:
        return 0
    _check_current_folder()
    if words[0] in READERS:
        limit_memory()
    if limits_files:
        from nimbus.runner.system.file_access import limit_file_access
        from nimbus.runner.system.root_folder import work_in_root

        command = context.command.name or ""
        limit_file_access(command, parameters(context))
        context.params |= work_in_root(command, parameters(context))
    # Limits each library to one thread; this must precede the import of NumPy by a command.
    importlib.import_module("nimbus.runner.system.threads")
    return context.command.invoke(context)


def _check_current_folder() -> None:
    try:
        os.getcwd()
    except OSError as error:
        what = f"cannot be used: {error.strerror}"
        raise InputError(what, where="the current folder", instead="change to an existing folder") from None
