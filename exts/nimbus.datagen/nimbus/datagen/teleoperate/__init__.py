"""Teleoperation: an operator moves the tools of a robot in real-time physics, and records demonstrations."""
