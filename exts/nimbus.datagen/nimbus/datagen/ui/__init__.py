"""User interfaces: a form of a task that a browser and Kit render, and runs that are started from either.

``form``, ``runs.launch``, ``runs.run_panel``, ``runs.run_status`` and ``remote`` without its scene preview need only
Python's standard library, because Kit's own Python has none of our dependencies. The rest runs in a Python that has
them.
"""
