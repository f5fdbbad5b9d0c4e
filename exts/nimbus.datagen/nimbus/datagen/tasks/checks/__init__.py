"""Checks of a task before anything runs: names, references, object kinds and contradictions."""
