"""Fuzzing with thousands of damaged and hostile inputs; each must be read, or refused in one line."""
