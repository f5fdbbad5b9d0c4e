"""Chaos suite: faults injected into real runs."""
