"""Search paths in environment variables, without the current folder.

Python, the loader of shared libraries and shells take an empty entry of a search path for the current folder, which may
be a dataset of others with a ``json.py`` or a ``libc.so.6``. Scripts that start interpreters often add to a variable
that is not set, which makes such an entry: ``export PYTHONPATH=$PYTHONPATH:more``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_EXTENDED = ("PYTHONPATH", "LD_LIBRARY_PATH")
"""Variables that start scripts extend."""
_NOWHERE = os.devnull
"""Entry in which nothing can be found."""


def clean_search_paths(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose search paths have absolute entries only; variables without any are left out."""
    kept: dict[str, str] = {}
    for name, value in environ.items():
        if not name.endswith("PATH") or "://" in value:  # an address is no search path
            kept[name] = value
            continue
        entries = [entry for entry in value.split(os.pathsep) if os.path.isabs(entry) and entry != _NOWHERE]
        if entries:
            kept[name] = os.pathsep.join(entries)
    return kept


def script_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a script that starts an interpreter: clean, and without a variable to extend unset."""
    return dict.fromkeys(_EXTENDED, _NOWHERE) | clean_search_paths(environ)
