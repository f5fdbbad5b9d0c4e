"""The cell: the processes of a run on one machine, and who decides what.

```
launcher.py    starts the supervisor, restarts it when it dies, passes Ctrl-C on, shows the dashboard
supervisor.py  one thread: hands out work, commits what comes back, watches the workers
  work.py        which episodes wait, are planned, are rendered     (pure)
  schedule.py    what a free worker does next                       (pure)
  deadlines.py   how long a phase may take                          (pure)
  evidence.py    when an episode is poison                          (pure)
  backoff.py     when a dead worker's successor starts              (pure)
  crew.py        the workers: started, watched, ended
  staff.py       how many workers in which role there should be
  status.py      what the status file says
  incidents.py   the folder that a fault leaves
zygote.py      loads the job once, in one thread, and forks the workers
worker.py      plans or renders, as it is told, and stamps its progress
  job.py         what the components are made from
  roles.py       where the chain of stages is cut in a planner's and a renderer's half
spec.py        what a run is asked to do
messages.py    what these processes say to each other, over channel.py
slab.py        plans in shared memory, as wire.py writes them
stamps.py      the page of progress stamps
processes.py   sessions, death with the parent, sweeping up
```
"""
