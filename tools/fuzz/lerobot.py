"""Damaged LeRobot datasets and shards: descriptions, tables, videos and archives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tools.fuzz.datasets import make, make_shards, train
from tools.fuzz.mutations import TEXTS, files_of, pick, replace_file, spoil_file, spoil_json, spoil_plain
from tools.fuzz.sort import Sort, command

_TYPES = (pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float64(), pa.string(), pa.binary(), pa.bool_())


def make_v21(folder: Path) -> None:
    """Write a small dataset of LeRobot v2.1."""
    from tests.support.foreign import write_v21

    write_v21(folder, lengths=(9, 6))


def make_v30(folder: Path) -> None:
    """Write a small dataset of LeRobot v3.0, as Nimbus exports it."""
    from nimbus.datagen.datasets.convert.convert import convert

    source = folder.with_name("source")
    make_v21(source)
    convert(source, folder, workers=1)
    shutil.rmtree(source)


def make_export(folder: Path) -> None:
    """Export a small dataset of Nimbus to LeRobot v3.0."""
    from nimbus.datagen.datasets.export.export import export

    source = folder.with_name("source")
    make(source)
    export(source, folder, workers=1)
    shutil.rmtree(source)


def spoil(folder: Path, random: np.random.Generator) -> str:
    """Damage one file of a dataset."""
    kind = pick(("json", "json", "table", "table", "bytes", "file"), random)
    if kind == "json":
        path = pick(files_of(folder, ".json", ".jsonl"), random)
        spoil_json(path, random)
        return f"values of {path.name}"
    if kind == "table" and (tables := files_of(folder, ".parquet")):
        path = pick(tables, random)
        return f"{path.relative_to(folder)}: {spoil_table(path, random)}"
    path = pick(files_of(folder), random)
    if kind == "bytes":
        spoil_file(path, random)
        return f"bytes of {path.name}"
    return f"{path.name} is a {replace_file(path, random)}"


def spoil_table(path: Path, random: np.random.Generator) -> str:
    """Damage a column, the metadata or the rows of a table."""
    table: Any = pq.ParquetFile(path).read()
    notes = dict(table.schema.metadata or {})
    if random.random() < 0.15:
        key = pick([*notes, b"pandas", b"nimbus"], random)
        try:
            value = spoil_plain(json.loads(notes.get(key, b"{}")), random)
            notes[key] = json.dumps(value).encode()
        except ValueError:
            notes[key] = b"{"
        pq.write_table(table.replace_schema_metadata(notes), path)
        return f"note {key}"
    place = int(random.integers(table.num_columns))
    name = table.column_names[place]
    match int(random.integers(8)):
        case 0:
            table, what = table.drop_columns([name]), "removed"
        case 1:
            table, what = table.slice(0, int(random.integers(len(table) + 1))), "fewer rows"
        case 2:
            table, what = pa.concat_tables([table, table]), "rows twice"
        case 3:
            table, what = table.append_column(name, table.column(place)), "twice"
        case 4:
            table, what = table.set_column(place, name, pa.nulls(len(table), table.column(place).type)), "nulls"
        case 5:
            values = [pick((None, *TEXTS), random) for _ in range(len(table))]
            table, what = table.set_column(place, name, pa.array(values, pa.string())), "texts"
        case _:
            value = pick((0, -1, 2**31, 2**62, 1e300, float("nan"), float("inf"), -15, 10**9), random)
            kind = table.column(place).type if random.random() < 0.6 else pick(_TYPES, random)
            column = _filled(value, len(table), kind, lists=random.random() < 0.1)
            table, what = table.set_column(place, name, column), f"{value} as {column.type}"
    pq.write_table(table.replace_schema_metadata(notes), path)
    return f"{name} {what}"


def _filled(value: float, count: int, kind: Any, *, lists: bool) -> Any:
    """Return a column that repeats one value, in the requested type if it can represent the value."""
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) else kind
    for wanted in (inner, pa.float64()):
        try:
            flat = pa.array([value] * count).cast(wanted)
            return pa.array([[item] * row for row, item in enumerate(flat.to_pylist())]) if lists else flat
        except pa.ArrowException:
            continue
    return pa.nulls(count)


def read(folder: Path, random: np.random.Generator) -> None:
    """Read a dataset with one of the commands that read datasets."""
    out = folder.parent / "out"
    match int(random.integers(6)):
        case 0 | 1:
            command("qa", folder, "--html", out.with_suffix(".html"))
        case 2:
            _convert(folder, out, random)
        case 3:
            command("filter", folder, "--where", "length > 3", "--out", out)
        case 4:
            command("card", folder)
        case _:
            train(folder)


def _convert(folder: Path, out: Path, random: np.random.Generator) -> None:
    from nimbus.datagen.datasets.convert.convert import convert

    convert(folder, out, to=pick(("lerobot", "lerobot-v2.1"), random), workers=1)


def spoil_shards(folder: Path, random: np.random.Generator) -> str:
    """Damage the manifest or an archive."""
    if random.random() < 0.6:
        return f"manifest: {spoil_table(folder / 'manifest.parquet', random)}"
    return spoil(folder, random)


def read_shards(folder: Path, random: np.random.Generator) -> None:
    """Verify shards, or train on them."""
    if random.random() < 0.5:
        command("verify", folder)
    else:
        train(folder)


SORTS = (
    Sort(name="lerobot-v2.1", make=make_v21, spoil=spoil, read=read),
    Sort(name="lerobot-v3.0", make=make_v30, spoil=spoil, read=read),
    Sort(name="lerobot-export", make=make_export, spoil=spoil, read=read),
    Sort(name="shards", make=make_shards, spoil=spoil_shards, read=read_shards),
)
