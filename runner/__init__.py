"""How a run happens, and what can be done with what it made: a file for each command, and what they share.

```
runner.py             runs Nimbus from a checkout; packages.py asks before whether this Python has what it needs
cli.py                the command line; ask_flags.py, data_flags.py and usd_flags.py have the flags of some commands,
                      flags.py says what a flag takes; unexpected.py what a bug looks like;
                      standard_streams.py what becomes of an output that is closed or full

                      before a run
  tasks.py              what there is to run; skills.py, objects.py, schema.py: what a task file can say
  robot.py              whether a robot file is right
  doctor.py             what will not work; estimate.py: what it will take
  studio.py             a task in a browser

                      a run
  run.py                makes a dataset: in cell/, whose own map says who decides what, or in serial.py
    progress.py           keeps count, and writes the status file, which status.py describes
    dashboard.py          shows it in the terminal: dashboard_view.py what, screen.py where
    interruption.py       Ctrl-C and SIGTERM
    leftovers.py          what somebody else did to its folder
    libraries.py          the libraries below it
  scale.py              other workers for a run that goes on

                      what a run made
  report/               figures, in the terminal and as a page; summary.py, run_figures.py and yields.py have them
  media/                pictures of it: preview.py, and rerun.py as a recording
  verify.py             reads it again, all of it; recompute.py makes layouts and plans again
  hash.py               one hash over it
  replay.py             runs its actions again; rerender.py shows its motions in another look
  certify.py            all proof of its quality, stored with it

                      datasets, whoever wrote them
  export.py             in a format that training code reads; export_usd.py as a stage; convert.py between versions
  filter.py             the episodes that meet a condition; made.py tells what came of it, and of the others
  qa.py                 whether it is fit to train on; card.py writes that down
  view.py               in Rerun, or on a contact sheet

                      Isaac Sim
  isaac_find.py         where it is; isaac_gpu.py: what it can render on
  isaac_instance.py     how an instance is started; isaac_memory.py removes what a killed one left behind
  isaac_worker.py       a worker inside it, with the job of isaac_job.py
  editor.py             the task editor of its panel, as a process
  verify_isaacsim.py    what works with the one of this machine; isaac_compare.py compares renderings

tidy.py               tables without spaces at the ends of their lines
```
"""
