"""Task editor in a separate process, for a host that has none of our dependencies, such as Kit.

``messages``, ``editor_process`` and ``remote_panel`` run in the host and need only Python's standard library. The other
modules run in Nimbus's own Python: the editor process owns the task and sends its form; the host renders the form and
sends the id of each control that the user operates.
"""
