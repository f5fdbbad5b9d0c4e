"""Tests that Kit's own test runner finds and runs inside Isaac Sim."""

scan_for_test_modules = True
