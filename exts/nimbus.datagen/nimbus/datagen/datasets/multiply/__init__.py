"""Multiplication of demonstrations: they are read, cut into subtasks, and written as a task that repeats them."""
