"""Helpers of the tests of the studio: a browser, and the actions on every control."""
