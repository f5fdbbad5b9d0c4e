"""Storing: one HDF5 file an episode, a ledger of every attempt, and the reader that gives both back exactly."""
