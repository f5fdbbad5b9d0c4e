"""Task editor as a process beside a host that has none of our dependencies, such as Kit.

``messages``, ``editor_process`` and ``remote_panel`` are the host's side and need nothing but Python's standard
library. The rest runs in Nimbus's own Python: it holds the task that is edited and sends its form; the host renders the
form and sends the id of the control that was used.
"""
