"""Helpers of the tests: datasets, robots, runs and stand-ins."""
