"""Multiplication of demonstrations: read, cut into subtasks, written as a task that repeats them."""
