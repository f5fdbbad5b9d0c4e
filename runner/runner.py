"""Run Nimbus from a checkout, installed or not: ``python runner/runner.py --task sort_trash``."""

import sys
from pathlib import Path

# In place of runner/ itself, whose modules must only be found as nimbus.runner.*
sys.path[0] = str(Path(__file__).resolve().parents[1] / "exts" / "nimbus.datagen")

from nimbus.runner.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
