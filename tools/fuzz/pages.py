"""Hostile texts in datasets: markup and control sequences, which pages and terminals must display literally."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tools.fuzz.datasets import make
from tools.fuzz.mutations import BELL, MARK, files_of, pick
from tools.fuzz.sort import Sort, command

_TEXTS = (MARK, f"</title>{MARK}", f'"{MARK}', f"--> {MARK}", BELL, f"[red]{BELL}", f"`{MARK}`", f"\n\n{MARK}\n")
_CELLS = (
    ("attempts", ("task", "phase", "reason", "detail", "episode_id")),
    ("episodes", ("owner", "detail", "episode_id")),
    ("faults", ("worker", "kind", "phase", "detail", "incident")),
    ("spans", ("worker", "stage")),
    ("runs", ("state", "mode", "workers")),
)
_HDF5 = ("instruction", "names/joints", "skills/skill", "skills/target", "labels/semantic_names")


def spoil(folder: Path, random: np.random.Generator) -> str:
    """Replace several texts of a dataset by a hostile one."""
    text = pick(_TEXTS, random)
    table, columns = pick(_CELLS, random)
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        for column in columns:
            key = "rowid" if table in ("faults", "spans") else "1"
            value = f"{key} || ?" if column == "episode_id" else "?"
            try:
                ledger.execute(f"UPDATE {table} SET {column} = {value}", (text,))
            except sqlite3.Error:
                continue
        objects = json.dumps([{"name": text, "kind": text, "class": text, "x": "0.1", "y": "0.2"}])
        ledger.execute("UPDATE attempts SET objects = ?, steps = ?", (objects, json.dumps([text])))
        ledger.execute("UPDATE attempts SET drawn = ?", (json.dumps({"visual": {text: text}}),))
    path = folder / "dataset.json"
    info: dict[str, Any] = json.loads(path.read_text())
    name = pick(("task", "robot", "joint_names", "cameras", "semantic_names", "inputs"), random)
    held = info[name]
    info[name] = (
        text if isinstance(held, str) else [text] if isinstance(held, list) else {text: next(iter(held.values()), "x")}
    )
    path.write_text(json.dumps(info))
    with h5py.File(pick(files_of(folder, ".hdf5"), random), "r+") as file:
        place = pick(_HDF5, random)
        found: Any = file[place]
        shape = found.shape
        del file[place]
        kind = h5py.string_dtype("utf-8", max(len(text.encode()), 1))  # texts of variable length are refused
        file.create_dataset(place, data=[text] * shape[0] if shape else text, dtype=kind)
    return f"{text!a} in {table}, {name}, {place}"


def read(folder: Path, random: np.random.Generator) -> None:
    """Write every page of the dataset, and print everything that commands print about it."""
    out = folder.parent / "out"
    page, sheet = out.with_suffix(".html"), out.with_suffix(".png")
    commands = (
        ("report", folder),
        ("card", folder),
        ("qa", folder, "--html", page),
        ("view", folder, "--sheet", sheet),
    )
    for words in commands:
        if random.random() < 0.6:
            command(*words)
    command("verify", folder, "--recompute", 0)


SORT = Sort(name="pages", make=make, spoil=spoil, read=read)
