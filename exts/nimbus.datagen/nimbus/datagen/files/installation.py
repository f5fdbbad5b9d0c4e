"""Installation of this Nimbus: its folders, and the commands that messages suggest to install it.

No package index has Nimbus. Its name is free there, so that a command with the name alone could install code of others:
messages name a checkout.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nimbus
from nimbus.datagen.errors import quote_words
from nimbus.datagen.files.own_files import is_own

PACKAGE_FOLDER = Path(str(nimbus.__file__)).absolute().parents[1]
"""Parent folder of the package, from which processes of the same version are started."""


def checkout_folder() -> Path | None:
    """Return the checkout that this Nimbus is part of; None for an installed wheel, or an extension alone.

    Commands execute code of its files. A folder with files of other users, such as ``/tmp``, is none.
    """
    folder = PACKAGE_FOLDER.parent.parent
    files = (folder, folder / "pyproject.toml", folder / "constraints.txt")
    is_checkout = folder / "exts" / "nimbus.datagen" == PACKAGE_FOLDER and all(path.exists() for path in files)
    return folder if is_checkout and all(map(is_own, files)) else None


def install_command(source: object, constraints: object) -> str:
    """Return the command that installs a checkout into this Python, quoted for a shell."""
    # -P: the current folder may have a pip.py of others.
    return quote_words(sys.executable, "-P", "-m", "pip", "install", "-e", source, "-c", constraints)


def add_extra(extra: str) -> str:
    """Return the fix for a missing extra of Nimbus: what to type, in one line."""
    if folder := checkout_folder():
        return f"type: {install_command(f'{folder}[{extra}]', folder / 'constraints.txt')}"
    return f"in a checkout of Nimbus, type: {install_command(f'.[{extra}]', 'constraints.txt')}"
