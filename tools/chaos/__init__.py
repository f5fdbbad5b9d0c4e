"""Chaos harness: injects faults into real runs and checks the results."""
