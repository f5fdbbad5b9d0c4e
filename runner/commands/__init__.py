"""Commands of Nimbus: one module per command, with its name, in which the function ``command`` declares the flags.

Only the module of the given command is imported; it imports heavy packages when the command runs. ``options.py`` has
the flags that several commands share, ``parser.py`` reads a command line with Typer, ``table.py`` and
``statement_text.py`` write lists.
"""

from __future__ import annotations

PANELS: dict[str, dict[str, str]] = {
    "make": {
        "run": "make a dataset, or continue the one in the folder",
        "demonstrate": "make episodes from an operator's recordings in the studio",
        "scale": "change the number or the roles of the workers of a run",
        "multiply": "turn a few demonstrations into many episodes, in new layouts, checked in physics",
        "close-the-loop": "make demonstrations, train a policy on their states, and evaluate it",
        "evaluate": "measure the success of a policy on held-out layouts, or compare two evaluations",
        "serve-policy": "serve a policy over openpi's wire, to this machine only",
        "improve": "train a policy on its own rollouts, in rounds",
        "rerender": "render stored motions again, with other images, labels and wording, into another dataset",
        "reword": "rewrite the steps of instructions with a language model; each sentence is checked",
    },
    "check": {
        "doctor": "find the problems of a task and the fields to change; or check this machine",
        "verify": "check all files of a dataset",
        "certify": "certify a dataset: replay, fresh renderings, labels against poses, accounting",
        "replay": "execute stored actions in physics again and compare the outcome",
        "qa": "check that a dataset of Nimbus, LeRobot v3.0 or v2.1 is fit for training",
        "hash": "print one hash over a dataset's episodes and their data",
    },
    "inspect": {
        "status": "show the run that writes into a dataset and the nodes of a cluster; or print its metrics",
        "report": "summarize the runs of a dataset: yield, failure reasons, stage times",
        "lineage": "print the ancestors of an episode: rollout, policies, demonstrations",
        "view": "show a dataset in Rerun, or draw a contact sheet of it",
    },
    "share": {
        "export": "write the stored episodes in a format that training code reads",
        "convert": "write a LeRobot dataset in another version or file size, without encoding images again",
        "filter": "write the episodes that meet a condition as a new dataset",
        "merge": "merge the parts of a dataset that several machines made with run --part",
        "mirror": "copy a dataset between stores and folders; the egress cost is printed first",
        "warm": "fetch a dataset from a store to this machine before its first use",
        "card": "write the README.md of a dataset: figures, images, code that loads it",
        "export-usd": "write a layout or a stored episode as one USD stage",
    },
    "author": {
        "studio": "edit a task in a browser: its fields, its scene, layouts, runs, datasets",
        "propose": "write tasks from goals drawn by seed, checked by the doctor and in physics",
        "tasks": "list the tasks that come with Nimbus",
        "skills": "list the skills and conditions that a task file can use",
        "objects": "list object libraries, or the kinds of one with size, mass and grasps",
        "assets": "import third-party meshes into an object library; each mesh is accepted or refused",
        "robot": "check a robot file: limits, tool, gripper, reach, a picture; or fetch the wheels of its model",
        "schema": "print the JSON Schema of a task file",
    },
    "machine": {
        "cluster": "write a RayJob for Kubernetes or a script for Slurm that starts a cluster for a run",
        "estimate": "forecast time and disk of a run, from five of its episodes",
        "verify-isaacsim": "test the Isaac Sim of this machine, and print a pass/fail table",
    },
}
"""Summary of each command, by panel of the help."""

COMMANDS: dict[str, str] = {name: meaning for panel in PANELS.values() for name, meaning in panel.items()}
