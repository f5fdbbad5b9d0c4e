"""Checks and measurements on a GPU; with ``--device cpu``, the same code with small inputs."""
