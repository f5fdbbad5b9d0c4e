"""Runs: how a dataset is generated, checked and displayed.

```
runner.py    runs Nimbus from a checkout, installed or not
cli.py       command line: help, errors, exit codes
commands/    one file per command, with its flags
cell/        processes of a run on one machine
  queue/       scheduling decisions, without processes
  transport/   messages and shared memory
  worker/      worker processes and the fork server
isaac/       instances of Isaac Sim as workers, and the editor process of its panel
monitor/     progress, status file, dashboard
report/      statistics of a dataset, as a table and as a page
media/       previews, recordings, sheets
checks/      replay, recomputation, certificates
system/      threads, signals, streams, child processes
```
"""

import os

# Threaded BLAS would change the last bits of a plan. NumPy reads these variables at its first import; they override the
# shell's values.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# USD's own threads would make forking the process unsafe. It also reports each setting that it reads, unless this is
# turned off.
os.environ |= {"PXR_WORK_THREAD_LIMIT": "1", "TF_ENV_SETTING_ALERTS_ENABLED": "0"}
