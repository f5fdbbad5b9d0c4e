"""Storage: one HDF5 file per episode, a ledger of every attempt, and readers of both."""
