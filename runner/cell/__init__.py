"""The cell: the processes of a run on one machine, and who decides what.

```
launcher.py      starts the supervisor, restarts it when it dies, passes Ctrl-C on
supervisor.py    one thread and none of the user's code: waits for whatever happens; holds the fork server
  shift.py         the run itself: takes what happens to whom it concerns, and knows when it is over
  opening.py       what a run opens before it begins: dataset, ledger row, status
  dispatch.py      gives orders, and follows what was made until it is settled
  commit queue.py        commits what was made, a few episodes at once
  places.py        where plans lie: slots of the slab, and files beside
  worker pool.py          the workers: started, heard, ended, reaped
  staff.py         how many workers in which role there should be
  watchdog.py      looks at stamps and memory, ends what hangs
  aftermath.py     what a worker's death means: its work goes back, a fault is noted
  disk.py          waits while the disk is full
  status.py        what the status file says
  incidents.py     the folder that a fault leaves
    backlog.py       what earlier runs left to be made
    work.py          where every episode is, and what comes next        (pure)
    schedule.py      whether a free worker plans or renders             (pure)
    pace.py          how long planning and rendering take               (pure)
    deadlines.py     how long a phase may take                          (pure)
    evidence.py      when an episode is poison                          (pure)
    backoff.py       when a dead worker's successor starts              (pure)
fork server.py        loads the job once, in one thread, and forks the workers
worker.py        plans or renders, as it is told, and stamps its progress
  job.py           what the components are made from
  roles.py         where the chain of stages is cut in a planner's and a renderer's half
  shelf.py         where its writer puts episodes: the supervisor is told
  result batch.py        what it says: at once, or of several short orders together
spec.py          what a run is asked to do
lease.py         an episode in somebody's hands
trouble.py       what a worker or the fork server says of the error for which it leaves
messages.py      what these processes say to each other, over channel.py
slab.py          plans in shared memory, as wire.py writes them, field by field (fields.py)
spans.py         what workers did, for the timeline
stamps.py        the page of progress stamps
memfd.py         shared memory without a name
processes.py     sessions, death with the parent, sweeping up
```
"""
