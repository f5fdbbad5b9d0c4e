"""Evaluation of policies: layouts, the run, its results, and the comparison of two evaluations.

```
layouts.py   the layouts that are evaluated
results.py   evaluation.json: outcomes by layout, success rates with intervals
compare.py   two evaluations, paired by layout
show.py      the results in the terminal
```
"""
