"""Short scripts in separate processes, forked from one interpreter with the libraries of datasets."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

_SERVER = r"""
import importlib, json, os, sys, traceback
import av, h5py, numpy, pyarrow
import tests.support.staging, tests.support.synthetic
from nimbus.datagen.store import failpoints

def child(code, arguments, environment, out, error):
    for number, path in ((1, out), (2, error)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    os.environ |= environment
    importlib.reload(failpoints)
    sys.argv = ["-c", *arguments]
    try:
        exec(compile(code, "<script>", "exec"), {"__name__": "__main__"})
        return 0
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()

for line in sys.stdin:
    pid = os.fork()
    if not pid:
        os._exit(child(*json.loads(line)))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def run_forked(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script like ``python -c``, without the two seconds of its imports; it may be killed.

    Args:
        code: Code of the script.
        arguments: ``sys.argv[1:]`` of the script.
        environment: Variables in addition to those of this process; ``NIMBUS_FAILPOINT`` is read again.
    """
    server = _server()
    assert server.stdin and server.stdout
    with tempfile.TemporaryDirectory() as folder:
        out, error = Path(folder, "out"), Path(folder, "error")
        words = [str(word) for word in arguments]
        server.stdin.write(json.dumps([code, words, environment, str(out), str(error)]) + "\n")
        server.stdin.flush()
        code_of = int(server.stdout.readline())
        return subprocess.CompletedProcess(words, code_of, out.read_text(), error.read_text())


@cache
def _server() -> subprocess.Popen[str]:
    env: dict[str, Any] = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    line = [sys.executable, "-c", _SERVER]
    server = subprocess.Popen(line, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.kill)
    return server
