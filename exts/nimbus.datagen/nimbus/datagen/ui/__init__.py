"""User interfaces: one form of a task, rendered by a browser and by Kit, and runs that are started from either.

``form``, ``runs.launch``, ``runs.run_panel``, ``runs.run_status`` and ``remote`` without its scene preview need nothing
but Python's standard library: Kit's own Python has none of our dependencies. The rest runs in a Python that has them.
"""
