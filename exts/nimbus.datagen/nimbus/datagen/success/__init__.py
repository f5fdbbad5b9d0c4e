"""Conditions of success by subject, judged from physics at the end of an attempt."""
