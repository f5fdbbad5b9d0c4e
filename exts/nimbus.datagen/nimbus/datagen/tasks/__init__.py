"""The task language: task files, their statements, and references to things."""
