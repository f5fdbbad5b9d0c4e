"""The runner: how a run happens, and what can be done with what it made.

```
runner.py             runs Nimbus from a checkout; packages.py asks before whether this Python has what it needs
cli.py                the command line: help, errors and exit codes; unexpected.py what a bug looks like;
                      standard_streams.py what becomes of an output that is closed or full
commands/             a file for each command, with its flags; what follows is what several of them share

                      before a run
  objects.py            the kinds of an object library, and a picture of them

                      a run
  run.py                runs a spec: in cell/, whose own map says who decides what, or in serial.py; shows what it made
    progress.py           keeps count, and writes the status file, which status.py describes
    dashboard.py          shows it in the terminal: dashboard_view.py what, screen.py where
    interruption.py       Ctrl-C and SIGTERM
    leftovers.py          what somebody else did to its folder
    libraries.py          the libraries below it
  scale.py              the request for other workers of a run that goes on

                      what a run made
  report/               figures, in the terminal and as a page; summary.py, run_figures.py and yields.py have them
  preview.py            pictures of it
  recompute.py          makes its layouts and plans again, and compares
  replay.py             runs its actions again, and compares
  certify.py            all proof of its quality, stored with it

                      datasets, whoever wrote them
  made.py               figures of an export, a conversion, a filtered dataset
  card.py               the text of a card; sheet.py a contact sheet; rerun_view.py episodes in Rerun

                      Isaac Sim
  isaac_find.py         where it is; isaac_gpu.py: what it can render on
  isaac_instance.py     how an instance is started; isaac_memory.py removes what a killed one left behind
  isaac_worker.py       a worker inside it, with the job of isaac_job.py
  editor.py             the task editor of its panel, as a process
  isaac_compare.py      compares renderings

tidy.py               tables without spaces at the ends of their lines
```
"""
