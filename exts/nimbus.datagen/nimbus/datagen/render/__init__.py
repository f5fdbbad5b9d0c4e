"""Stacked rendering: K steps of a trajectory become K copies of the scene, rendered in one launch per camera."""
