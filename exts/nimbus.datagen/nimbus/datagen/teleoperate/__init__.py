"""Teleoperation: an operator moves the tools of a robot in physics in real time, and records demonstrations."""
