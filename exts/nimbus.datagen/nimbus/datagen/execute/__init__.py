"""Execution: skills plan motions and run them in physics, and everything that happens is recorded."""
