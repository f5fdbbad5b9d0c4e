"""Instances of Isaac Sim as workers of a run."""
