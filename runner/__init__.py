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
