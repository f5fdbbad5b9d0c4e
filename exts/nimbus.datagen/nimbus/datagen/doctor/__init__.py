"""Task doctor: reports the problems of a task before any episode, and the fields to change.

One file per check; each is a function from a :class:`~nimbus.datagen.doctor.case.Case` to findings.
"""
