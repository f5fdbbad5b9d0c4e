"""Precomputed light of static parts: a term per lamp and part of the sky, weighted and summed for each episode."""
