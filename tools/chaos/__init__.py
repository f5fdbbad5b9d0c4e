"""Chaos harness: faults injected into real runs, and the account of what came of them."""
