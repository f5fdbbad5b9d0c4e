"""Helpers of the tests: datasets, robots, runs and stand-ins."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Folder of the checkout."""
