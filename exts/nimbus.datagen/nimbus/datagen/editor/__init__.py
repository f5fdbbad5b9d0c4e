"""The task editor as a process beside a host that has none of our dependencies, such as Kit.

``link`` is the host's side and needs nothing but Python's standard library. The rest runs in Nimbus's own Python: it
holds the task that is edited, and describes its controls; the host draws them and says which of them was touched.
"""
