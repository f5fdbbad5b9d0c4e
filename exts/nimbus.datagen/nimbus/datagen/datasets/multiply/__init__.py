"""Multiplication of demonstrations: reading them, cutting them into subtasks, and writing a task that repeats them."""
