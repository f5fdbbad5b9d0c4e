"""Run Nimbus from a checkout, installed or not: ``python runner/runner.py --task sort_trash``."""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
# Replaces runner/ itself, whose modules must only be importable as nimbus.runner.*
sys.path[0] = str(CHECKOUT / "exts" / "nimbus.datagen")

from nimbus.runner.cli import main  # noqa: E402
from nimbus.runner.system.output import write_error  # noqa: E402
from nimbus.runner.system.requirements_check import requirements_error  # noqa: E402

if __name__ == "__main__":
    if line := requirements_error(sys.argv[1:], checkout=CHECKOUT):
        write_error(line + "\n")
        sys.exit(2)
    sys.exit(main())
