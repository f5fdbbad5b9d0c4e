"""Search paths in environment variables do not contain the current folder."""

from __future__ import annotations

import subprocess

from nimbus.datagen.files.search_paths import clean_search_paths, script_environment

HOST = {"PATH": "/bin::.", "LD_LIBRARY_PATH": ":/opt/lib", "PYTHONPATH": "", "PWD": "/x", "SOME_PATH": "http://a/b"}


def test_empty_and_relative_entries_are_left_out():
    assert clean_search_paths(HOST) == {
        "PATH": "/bin",
        "LD_LIBRARY_PATH": "/opt/lib",
        "PWD": "/x",
        "SOME_PATH": "http://a/b",
    }


def test_a_script_extends_no_unset_variable():
    script = "echo $PYTHONPATH:/more $LD_LIBRARY_PATH:/more"
    done = subprocess.run(["/bin/sh", "-c", script], env=script_environment(HOST), capture_output=True, text=True)
    assert done.stdout == "/dev/null:/more /opt/lib:/more\n"
    assert clean_search_paths({"PYTHONPATH": "/dev/null:/more"}) == {"PYTHONPATH": "/more"}
