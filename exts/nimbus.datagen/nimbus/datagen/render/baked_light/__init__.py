"""Precomputed light of static parts: one term per lamp and for the sky, weighted and summed for each episode."""
