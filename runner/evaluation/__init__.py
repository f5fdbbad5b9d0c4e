"""Evaluation of policies: which layouts, the run, its results, and the comparison of two.

```
layouts.py   which layouts are evaluated
results.py   evaluation.json: outcomes by layout, rates with intervals
compare.py   two evaluations, paired by layout
show.py      the results in the terminal
```
"""
