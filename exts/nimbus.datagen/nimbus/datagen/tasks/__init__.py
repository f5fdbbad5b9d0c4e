"""The task language: task files, steps, references, plug-ins."""
