"""Stacked rendering: K steps of a trajectory become K worlds, seen by every camera in one launch each."""
