"""Gaussian splats: files, rendering, and proxy geometry."""
