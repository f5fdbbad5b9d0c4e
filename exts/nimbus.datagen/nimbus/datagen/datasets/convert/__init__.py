"""Conversion of LeRobot datasets of any origin to another version, file size or subset of episodes."""
