"""Processes, threads, signals and streams of the operating system."""
