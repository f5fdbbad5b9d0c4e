"""Multiplication of demonstrations: reading, cutting into subtasks, and writing of a task that repeats them."""
