"""Conditions of success by subject, evaluated on the state of physics at the end of an attempt."""
