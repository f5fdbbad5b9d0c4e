"""Warp kernels of the default renderer, and their data."""
