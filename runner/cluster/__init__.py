"""Runs on clusters of several machines."""
