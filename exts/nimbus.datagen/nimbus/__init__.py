"""Nimbus: a data factory for embodied AI."""

from pathlib import Path

# A checkout whose links came out as text files (git on Windows) finds the rooms beside the extension.
if not (Path(__file__).parent / "skills").is_dir():
    __path__.append(str((Path(__file__).parent / "../../..").resolve()))
