"""The task panel without a toolkit: what it knows and does, for Kit's window and a browser alike.

``model``, ``launch`` and ``status`` need nothing but Python's standard library: Kit's own Python has none of our
dependencies, and must not get them. The editor (``draft``, ``forms``, ``fields``, ``step_edits``, ``yaml_edit``) runs
in a Python that has them.
"""
