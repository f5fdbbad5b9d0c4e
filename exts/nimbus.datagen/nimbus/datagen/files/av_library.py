"""PyAV; all modules import it from here.

The libraries of its wheel were built for a folder in ``/tmp``. When they are loaded, GnuTLS reads a file of settings
there, which any user of the machine can put there; a pipe would block the import.
"""

from __future__ import annotations

import os

__all__ = ["FFmpegError", "VideoReformatter", "av"]

_SETTINGS = "GNUTLS_SYSTEM_PRIORITY_FILE"
_given = os.environ.get(_SETTINGS)
os.environ.setdefault(_SETTINGS, os.devnull)
import av  # noqa: E402
from av.error import FFmpegError  # noqa: E402
from av.video.reformatter import VideoReformatter  # noqa: E402

if _given is None:  # programs that this process starts follow the settings of the system
    del os.environ[_SETTINGS]
