"""The task doctor: says before any episode what will not work, and which field to change to what.

One check a file; each is a function from a :class:`~nimbus.datagen.doctor.case.Case` to findings.
"""
