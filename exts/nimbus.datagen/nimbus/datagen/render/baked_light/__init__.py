"""Precomputed light of static parts: one term per lamp and per part of the sky, weighted and summed for each episode."""
