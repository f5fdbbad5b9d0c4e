"""Runs: how a dataset is made, checked and shown.

```
runner.py    runs Nimbus from a checkout, installed or not
cli.py       command line: help, errors, exit codes
commands/    one file a command, with its flags
cell/        processes of a run on one machine
  queue/       scheduling decisions, without processes
  transport/   messages and shared memory
  worker/      worker processes and the fork server
isaac/       instances of Isaac Sim as workers, and the editor process of its panel
monitor/     progress, status file, dashboard
report/      figures of a dataset, as a table and as a page
media/       previews, recordings, sheets
checks/      replay, recomputation, certificates
system/      threads, signals, streams, child processes
```
"""

import os

# Threaded BLAS would change the last bits of a plan, whatever the shell says; read when NumPy is first imported.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# USD would start threads of its own, and with them a process cannot be forked; it reports each setting that it obeys.
os.environ |= {"PXR_WORK_THREAD_LIMIT": "1", "TF_ENV_SETTING_ALERTS_ENABLED": "0"}
