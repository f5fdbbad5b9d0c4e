"""Scheduling decisions as pure functions and state machines."""
