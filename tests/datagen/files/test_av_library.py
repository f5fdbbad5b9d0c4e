"""PyAV's libraries read no settings of their folder in ``/tmp``."""

from __future__ import annotations

import os
import subprocess
import sys


def test_the_settings_are_those_of_no_other_user():
    """The libraries read this variable in place of the file."""
    code = "from nimbus.datagen.files.av_library import av; import os; print(os.environ['GNUTLS_SYSTEM_PRIORITY_FILE'])"
    unset = {name: value for name, value in os.environ.items() if not name.startswith("GNUTLS")}
    for given, expected in (({}, os.devnull), ({"GNUTLS_SYSTEM_PRIORITY_FILE": "/etc/own"}, "/etc/own")):
        text = subprocess.check_output([sys.executable, "-P", "-c", code], env=unset | given, text=True)
        assert text.strip() == expected
