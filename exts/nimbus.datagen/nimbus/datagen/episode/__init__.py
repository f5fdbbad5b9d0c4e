"""Data of one episode: layout, trajectory, observations, provenance."""
