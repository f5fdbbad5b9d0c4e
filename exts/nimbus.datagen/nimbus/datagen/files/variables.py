"""Environment variables that name files and folders."""

from __future__ import annotations

from pathlib import Path

from nimbus.datagen.errors import InputError


def variable_path(variable: str, text: str) -> Path:
    """Return the path in an environment variable; ``~`` stands for the home folder.

    A relative path is refused: it would begin in the current folder, which may be a dataset of another user.

    Args:
        variable: Name of the variable, for the error.
        text: Its value.

    Raises:
        InputError: The path is relative, or names a user that does not exist.
    """
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise InputError(f"no user '{Path(text).parts[0]}'", where=variable, instead="write an absolute path") from None
    if not path.is_absolute():
        what = f"'{text}' is a relative path, which would begin in the current folder"
        raise InputError(what, where=variable, instead="write an absolute path")
    return path


def variable_program(variable: str, text: str) -> str:
    """Return the program in an environment variable: a name, which is searched in ``PATH``, or an absolute path.

    Raises:
        InputError: It is a relative path with a folder.
    """
    return text if Path(text).name == text else str(variable_path(variable, text))
