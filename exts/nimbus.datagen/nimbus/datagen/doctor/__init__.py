"""Task doctor: reports before any episode which problems a task has, and which field to change.

One file per check; each is a function from a :class:`~nimbus.datagen.doctor.case.Case` to findings.
"""
