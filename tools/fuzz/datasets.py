"""Damaged Nimbus datasets: description, ledger, episode files and videos."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tools.fuzz.mutations import (
    MARK,
    NUMBERS,
    OUTSIDE,
    PLAIN,
    TEXTS,
    files_of,
    pick,
    replace_file,
    spoil_file,
    spoil_json,
)
from tools.fuzz.sort import Sort, command

_TABLES = ("attempts", "episodes", "faults", "spans", "runs")
_READERS = ("verify", "verify", "report", "qa", "view", "card", "hash", "export", "train", "filter", "status")


def make(folder: Path) -> None:
    """Write a small dataset: stored episodes with images and with videos, and a kept failure."""
    from nimbus.datagen.store.ledger.records import Fault, TimeSpan
    from nimbus.datagen.store.writer import Hdf5Writer
    from tests.support.synthetic import failure, make_rendered, open_dataset

    with open_dataset(folder) as dataset:
        for images, index in (("lossless", 0), ("video", 1)):
            writer = Hdf5Writer(dataset, images=images)  # pyright: ignore[reportArgumentType]
            list(writer(iter([make_rendered(index, steps=8), make_rendered(index + 4, outcome=failure())])))
            writer.close()
        run = dataset.ledger.start_run(mode="serial", cores=2)
        dataset.ledger.record(Fault(time=1.0, run=1, worker="w0", kind="killed"))
        dataset.ledger.record(TimeSpan(run=1, worker="w0", stage="plan", idx=0, begin=1.0, end=2.0))
        dataset.ledger.end_run(run, state="done", wall_seconds=3.0)
    (folder / "ledger.sqlite-wal").unlink(missing_ok=True)


def spoil(folder: Path, random: np.random.Generator) -> str:
    """Damage one part of a dataset."""
    kind = pick(("info", "cell", "cell", "sql", "hdf5", "hdf5", "hdf5", "bytes", "file"), random)
    if kind == "info":
        spoil_json(folder / "dataset.json", random)
        return "dataset.json"
    if kind == "cell":
        return _spoil_cell(folder / "ledger.sqlite", random)
    if kind == "sql":
        return _spoil_schema(folder / "ledger.sqlite", random)
    if kind == "hdf5":
        return spoil_hdf5(pick(files_of(folder, ".hdf5"), random), random)
    path = pick(files_of(folder), random)
    if kind == "bytes":
        spoil_file(path, random)
        return f"bytes of {path.name}"
    return f"{path.name} is a {replace_file(path, random)}"


def read(folder: Path, random: np.random.Generator) -> None:
    """Read a dataset with one of the commands that read datasets."""
    out = folder.parent / "out"
    match pick(_READERS, random):
        case "verify":
            command("verify", folder, "--recompute", 0)
        case "report":
            command("report", folder)
        case "qa":
            command("qa", folder, "--html", out.with_suffix(".html"))
        case "view":
            command("view", folder, "--sheet", out.with_suffix(".png"))
        case "card":
            command("card", folder)
        case "hash":
            command("hash", folder)
        case "export":
            _export(folder, out, random)
        case "filter":
            command("filter", folder, "--where", "success", "--out", out)
        case "status":
            _open_to_write(folder)
        case _:
            train(folder)


def _export(folder: Path, out: Path, random: np.random.Generator) -> None:
    from nimbus.datagen.datasets.export.export import export

    formats = ("lerobot", "lerobot-v2.1", "robomimic", "aloha", "shards")
    export(folder, out, to=pick(formats, random), workers=1, keep_failures=random.random() < 0.3)


def _open_to_write(folder: Path) -> None:
    from tests.support.synthetic import open_dataset

    open_dataset(folder).close()


def train(folder: Path) -> None:
    """Read some samples as a training run does."""
    from nimbus.datagen.datasets.training.reader import Reader

    with Reader(folder) as reader:
        reader.frames.facts()
        for row in {0, len(reader) // 2, len(reader) - 1} if len(reader) else ():
            reader[row]


def _spoil_cell(path: Path, random: np.random.Generator) -> str:
    with sqlite3.connect(path) as ledger:
        table = pick(_TABLES, random)
        columns = [row[1] for row in ledger.execute(f"PRAGMA table_info({table})")]
        column, value = pick(columns, random), pick((*PLAIN, b"\xff\xfe"), random)
        if isinstance(value, dict | list | bool) or value is None or (isinstance(value, int) and abs(value) >= 2**63):
            value = str(value)
        if isinstance(value, str):
            value = value.encode(errors="replace").decode()
        try:
            ledger.execute(f"UPDATE {table} SET {column} = ?", (value,))
        except sqlite3.Error as error:
            return f"{table}.{column}: {error}"
        return f"{table}.{column} = {value!r:.80}"


def _spoil_schema(path: Path, random: np.random.Generator) -> str:
    table = pick(_TABLES, random)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    copy = f"ALTER TABLE {table} RENAME TO stolen;"
    statements = {
        "no table": f"DROP TABLE {table}",
        "an endless view": f"{copy} CREATE VIEW {table} AS {endless} SELECT stolen.* FROM stolen, n",
        "a view of huge blobs": f"{copy} CREATE VIEW {table} AS SELECT stolen.*, zeroblob(2000000000) AS b FROM stolen",
        "a trigger": f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM attempts; END",
        "a column less": f"CREATE TABLE n AS SELECT 1 AS idx; DROP TABLE {table}; ALTER TABLE n RENAME TO {table}",
        "many rows": f"CREATE TABLE n AS SELECT * FROM {table}; "
        f"INSERT INTO n SELECT n.* FROM n, (WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k LIMIT 9999) "
        f"SELECT i FROM k); DROP TABLE {table}; ALTER TABLE n RENAME TO {table}",
        "an index on an expression": f"CREATE INDEX x ON {table} (abs(-9223372036854775807))",
        "another table": "CREATE TABLE other (x)",
        "a generated column": f"ALTER TABLE {table} ADD COLUMN g AS (hex(zeroblob(900000000)))",
    }
    name = pick(sorted(statements), random)
    with sqlite3.connect(path) as ledger:
        try:
            ledger.executescript(statements[name])
        except sqlite3.Error as error:
            return f"{table}: {name}: {error}"
    return f"{table}: {name}"


def spoil_hdf5(path: Path, random: np.random.Generator) -> str:
    """Damage an attribute or a dataset of an episode file."""
    with h5py.File(path, "r+") as file:
        if random.random() < 0.25:
            name = pick((*file.attrs, "new"), random)
            value = pick((*NUMBERS[:13], *TEXTS, np.zeros(3), np.nan, np.inf, h5py.Empty("f")), random)
            try:
                file.attrs[name] = value
            except (OSError, TypeError, ValueError) as error:
                return f"attribute {name}: {error}"
            return f"attribute {name} = {value!r:.60}"
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        name = pick(names, random)
        return f"{path.suffix} {name}: {_replace(file, name, random)}"


def _replace(file: h5py.File, name: str, random: np.random.Generator) -> str:
    found: Any = file[name]
    held, shape = found[()], found.shape
    del file[name]
    text = pick((*TEXTS, "[" * 5000, '{"success": 1}', "{}", "null"), random).replace("\0", " ")
    huge = (2**40, *shape[1:]) if shape else (2**40,)
    kinds: dict[str, Callable[[], object]] = {
        "missing": lambda: None,
        "huge": lambda: file.create_dataset(name, huge, found.dtype, chunks=True) if held is not None else None,
        "deep": lambda: file.create_dataset(name, (1,) * 30, "f8"),
        "empty": lambda: file.create_dataset(name, (0, *shape[1:]) if shape else (0,), "f8"),
        "null": lambda: file.create_dataset(name, data=h5py.Empty("f8")),
        "text": lambda: file.create_dataset(name, data=text),
        "texts": lambda: file.create_dataset(name, data=[text] * 3, dtype=h5py.string_dtype()),
        "not finite": lambda: file.create_dataset(name, data=np.full(shape, np.nan)),
        "large": lambda: file.create_dataset(name, data=np.full(shape, 1e300)),
        "negative": lambda: file.create_dataset(name, data=np.full(shape, -5, np.int64)),
        "other size": lambda: file.create_dataset(name, data=np.zeros((3, 2))),
        "compound": lambda: file.create_dataset(name, (3,), np.dtype([("a", "f8"), ("b", "i4")])),
        "ragged": lambda: file.create_dataset(name, (3,), h5py.vlen_dtype(np.float64)),
        "references": lambda: file.create_dataset(name, (3,), h5py.ref_dtype),
        "group": lambda: file.create_group(name),
        "soft link": lambda: file.__setitem__(name, h5py.SoftLink(f"/{name}")),
        "link elsewhere": lambda: file.__setitem__(name, h5py.SoftLink("/observations/qpos")),
        "external link": lambda: file.__setitem__(name, h5py.ExternalLink(f"{OUTSIDE}/x.hdf5", "/x")),
        "circle": lambda: file.__setitem__(name, h5py.SoftLink("/")),
        "hard circle": lambda: file.__setitem__(name, file["/"]),
        "marked": lambda: file.create_dataset(name, data=MARK),
        "enum": lambda: file.create_dataset(name, (2,), h5py.enum_dtype({"a": 1}, "i4")),
        "external storage": lambda: file.create_dataset(name, (64,), "u1", external=[("/etc/passwd", 0, 64)]),
    }
    kind = pick(sorted(kinds), random)
    if kind == "huge":
        file.create_dataset(name, huge, "f8", chunks=(1024, *huge[1:]))
        return kind
    try:
        kinds[kind]()
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        return f"{kind}: {error}"
    return kind


SORT = Sort(name="datasets", make=make, spoil=spoil, read=read)


def make_shards(folder: Path) -> None:
    """Pack a small dataset into shards."""
    from nimbus.datagen.datasets.export.export import export

    source = folder.with_name("source")
    make(source)
    export(source, folder, to="shards", workers=1, keep_failures=True)
    shutil.rmtree(source)
