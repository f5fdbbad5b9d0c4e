"""Execution: skills plan motions, physics runs them, and a recorder stores the result."""
