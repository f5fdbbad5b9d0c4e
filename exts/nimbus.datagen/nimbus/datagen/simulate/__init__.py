"""Simulators: each loads the same USD assets and runs the same layouts."""
