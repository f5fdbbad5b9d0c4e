"""Benchmarks: the figures in the docs are measured here."""
