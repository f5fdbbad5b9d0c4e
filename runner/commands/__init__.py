"""Commands of Nimbus, one module each with the command's name, whose function ``command`` declares the flags.

Only the module of the command that is given is imported; it imports what the command works with when it runs.
``options.py`` and ``worker_split.py`` have the flags that several commands share, ``parser.py`` reads a command line
with Typer, ``table.py`` and ``statement_text.py`` write lists.
"""

from __future__ import annotations

PANELS: dict[str, dict[str, str]] = {
    "make": {
        "run": "make a dataset, or continue the one in the folder",
        "demonstrate": "make episodes from what an operator recorded in the studio",
        "scale": "give a run that goes on more or fewer workers, or other roles",
        "multiply": "turn a few demonstrations into many episodes, in new layouts, checked in physics",
        "close-the-loop": "demonstrations, a policy trained on their states, and its success",
        "evaluate": "success of a policy on held-out layouts, with its interval; compare two",
        "serve-policy": "let a policy answer over openpi's wire, to this machine alone",
        "improve": "let a policy learn from its own rollouts, in rounds",
        "rerender": "show stored motions anew: pixels, labels and wording, into another dataset",
        "reword": "let a language model word the steps of instructions, each sentence proved",
    },
    "check": {
        "doctor": "say what will not work in a task, and which field to change; or look at this machine",
        "verify": "read a dataset again and check all of it",
        "certify": "prove a dataset: replay, fresh renderings, labels against poses, accounting",
        "replay": "execute stored actions in physics again and compare the outcome",
        "qa": "check whether a dataset is fit to train on: one of Nimbus, or of LeRobot v3.0 or v2.1",
        "hash": "print one hash over a dataset's episodes and their data",
    },
    "inspect": {
        "status": "show the run that writes into a dataset, with the nodes of a cluster; or print its metrics",
        "report": "show what a run made: yield, reasons, stage times",
        "lineage": "print what an episode descends from: rollout, policies, demonstrations",
        "view": "look at a dataset in Rerun, or draw a contact sheet of it",
    },
    "share": {
        "export": "write the stored episodes in a format that training code reads",
        "convert": "write a LeRobot dataset in another version or cut; no picture is encoded again",
        "filter": "write the episodes that meet a condition as a dataset of their own",
        "merge": "write the parts of a dataset, made by run --part on several machines, as one",
        "mirror": "copy a dataset between stores and folders, its egress cost printed first",
        "warm": "fetch a dataset of a store to this machine before it is used",
        "card": "write the README.md of a dataset: figures, pictures, how to load it",
        "export-usd": "write a layout or a stored episode as one USD stage",
    },
    "author": {
        "studio": "edit a task in a browser: its fields, its scene, layouts, runs, datasets",
        "propose": "write tasks from goals drawn by seed, checked by the doctor and in physics",
        "tasks": "list the tasks that come with Nimbus",
        "skills": "list the skills and conditions that a task file can use",
        "objects": "list object libraries, or the kinds of one with size, mass and grasps",
        "assets": "import meshes of others, each judged alone, into a library that tasks draw from",
        "robot": "check a robot file: limits, tool, gripper, reach, a picture; or fetch the wheels of its model",
        "schema": "print the JSON Schema of a task file",
    },
    "machine": {
        "cluster": "write a RayJob for Kubernetes or a script for Slurm that starts a cluster for a run",
        "estimate": "forecast time and disk of a run, from five of its episodes",
        "verify-isaacsim": "try what Nimbus does with the Isaac Sim of this machine: a pass/fail table",
    },
}
"""Meaning of each command, by the panel of the help that shows it."""

COMMANDS: dict[str, str] = {name: meaning for panel in PANELS.values() for name, meaning in panel.items()}
