"""Run Nimbus from a checkout, installed or not: ``python runner/runner.py --task sort_trash``."""

import shlex
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]

if sys.version_info < (3, 11):  # noqa: UP036 - older versions cannot import the modules below
    found = ".".join(map(str, sys.version_info[:3]))
    make = f"make -C {shlex.quote(str(CHECKOUT))} run PYTHON=python3.12"
    sys.stderr.write(f"Nimbus needs Python 3.11 or 3.12, this is {found}; type: {make}\n")
    sys.exit(2)

# Replaces runner/ itself, whose modules must only be importable as nimbus.runner.*
sys.path[0] = str(CHECKOUT / "exts" / "nimbus.datagen")

from nimbus.runner.cli import main  # noqa: E402
from nimbus.runner.system.output import write_error  # noqa: E402
from nimbus.runner.system.requirements_check import requirements_error  # noqa: E402

if __name__ == "__main__":
    line = requirements_error(sys.argv[1:], checkout=CHECKOUT)
    if line:
        write_error(line + "\n")
        sys.exit(2)
    sys.exit(main())
