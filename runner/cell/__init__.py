"""The cell: the processes of a run on one machine.

The launcher starts the supervisor and restarts it after a crash. The supervisor, one thread that runs none of the
user's code, owns the queue, the worker pool and the ledger. The fork server loads the job once and forks the workers,
which plan or render.

```
launcher, supervisor, run_loop        process tree and the loop of a run
start_run, dispatcher, commit_queue   from the ledger to orders, from results to the dataset
worker_pool, pool_size                workers and their number in each role
watchdog, fault_handler, disk_guard   hung workers, lost workers, full disks
incidents, status, plan_slots         folders of faults, status file, plans between workers
run                                   a spec in these processes, or in this one
queue/                                work queue, scheduler, deadlines, poison rule: pure
transport/                            channel, messages, spec, shared slots, plan codec
worker/                               fork server, job, main loop, heartbeat
```
"""
