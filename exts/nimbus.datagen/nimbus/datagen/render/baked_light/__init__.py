"""Precomputed light for static parts: a basis of lamps and sky, combined into looks as weighted sums."""
