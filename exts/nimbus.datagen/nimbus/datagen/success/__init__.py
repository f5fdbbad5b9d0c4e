"""Conditions of success: one a file, judged from physics at the end of an attempt."""
