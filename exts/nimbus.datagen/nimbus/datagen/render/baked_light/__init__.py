"""Precomputed light of static parts: a basis of lamps and sky, whose weighted sums are the looks of episodes."""
