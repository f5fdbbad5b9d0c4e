"""Stacked rendering in Isaac Sim."""
