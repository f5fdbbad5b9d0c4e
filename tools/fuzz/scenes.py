"""Damaged foreign navigation scenes, splats, asset libraries, proposal logs and stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz.mutations import TEXTS, files_of, pick, replace_file, spoil_file, spoil_json, spoil_text
from tools.fuzz.sort import Sort, command


def make_splats(folder: Path) -> None:
    """Write splats in every format."""
    from nimbus.datagen.splats.training_ply import write_training_ply
    from tests.support.splat_reference import random_cloud, write_compressed_ply, write_spz

    folder.mkdir()
    write_training_ply(random_cloud(40), folder / "trained.ply")
    write_compressed_ply(random_cloud(300, degree=2), folder / "packed.compressed.ply")
    for version in (1, 2, 3, 4):
        write_spz(random_cloud(30, degree=3 if version > 2 else 0), folder / f"v{version}.spz", version=version)


def spoil_splats(folder: Path, random: np.random.Generator) -> str:
    """Keep one file, and damage its header or its bytes."""
    path = _keep_one(folder, random)
    if random.random() < 0.05:
        return f"{path.name} is a {replace_file(path, random)}"
    content = path.read_bytes()
    head, mark, rest = content.partition(b"end_header\n")
    if mark and random.random() < 0.6:
        text = spoil_text(head.decode("latin-1"), random)
        path.write_bytes(text.encode("latin-1", "replace")[: 1 << 20] + mark + rest)
        return f"header of {path.name}"
    if random.random() < 0.5:
        at = int(random.integers(min(len(content), 64)))
        path.write_bytes(content[:at] + random.bytes(4) + content[at + 4 :])
        return f"bytes {at} of {path.name}"
    spoil_file(path, random)
    return f"bytes of {path.name}"


def read_splats(folder: Path, random: np.random.Generator) -> None:
    """Read the file as splats."""
    from nimbus.datagen.splats.read import read_splats as read

    path = next(iter(sorted(folder.iterdir())), folder / "gone.spz")
    read(path).moved(np.diag([2.0, 2.0, 2.0, 1.0]))


def make_scenes(folder: Path) -> None:
    """Write a room in the file layout of each published dataset."""
    from tests.support import foreign_scenes as scenes

    for name in ("hm3d", "scannet", "replica", "hssd", "front"):
        getattr(scenes, f"write_{name}")(folder / name)


def spoil_scene(folder: Path, random: np.random.Generator) -> str:
    """Damage one file of one scene."""
    name = pick([path.name for path in sorted(folder.iterdir())], random)
    path = pick(files_of(folder / name), random)
    (folder / "chosen").write_text(name)
    if random.random() < 0.05:
        return f"{name}: {path.name} is a {replace_file(path, random)}"
    if path.suffix == ".json" and random.random() < 0.85:
        spoil_json(path, random)
    elif path.suffix in (".txt", ".csv"):
        path.write_text(spoil_text(path.read_text(), random), errors="replace")
    else:
        spoil_file(path, random)
    return f"{name}: {path.name}"


def read_scene(folder: Path, random: np.random.Generator) -> None:
    """Open the damaged scene and export it."""
    from nimbus.datagen.navigate.read.open_scene import open_scene

    name = (folder / "chosen").read_text()
    main = {
        "hm3d": "00800-TEEsavR23oF/TEEsavR23oF.glb",
        "scannet": "scene0000_00/scene0000_00_vh_clean_2.ply",
        "replica": "room_0/mesh.ply",
        "hssd": "scenes/102343992.scene_instance.json",
    }
    path = folder / name / main[name] if name in main else _front(folder / name)
    open_scene(path)


def _front(folder: Path) -> Path:
    found = [path for path in files_of(folder, ".json") if "model" not in path.parts]
    return found[0] if found else folder / "gone.json"


def make_library(folder: Path) -> None:
    """Import a mesh into a library, and write a log of proposals."""
    import trimesh

    from nimbus.datagen.assets.import_library import import_assets
    from tests.datagen.propose.test_measured_yields import GRAPH

    folder.mkdir()
    source = folder.with_name("meshes")
    source.mkdir()
    trimesh.creation.box((0.05, 0.04, 0.06)).export(source / "wood_block.glb")
    import_assets([source], folder / "lib", jobs=1)
    line: dict[str, Any] = {"attempts": [{"success": True, "phase": "place apple_0"}], "steps": 4}
    line["graph"] = GRAPH.to_plain()
    (folder / "log").mkdir()
    (folder / "log" / "proposals.jsonl").write_text(f"{json.dumps(line)}\n" * 2)


def spoil_library(folder: Path, random: np.random.Generator) -> str:
    """Damage one file of the library or the log; the checksums of changed arrays are corrected."""
    # No command reads the pages, and their markup would look like an injection.
    paths = [path for path in files_of(folder) if path.suffix != ".html"]
    path = pick(paths, random)
    if random.random() < 0.08:
        return f"{path.name} is a {replace_file(path, random)}"
    if path.suffix in (".json", ".jsonl"):
        spoil_json(path, random)
    elif path.suffix == ".npz":
        _spoil_arrays(path, folder / "lib" / "index.json", random)
    elif path.suffix in (".yaml", ".md"):
        path.write_text(spoil_text(path.read_text(), random), errors="replace")
    else:
        spoil_file(path, random)
    return path.name


def _spoil_arrays(path: Path, index: Path, random: np.random.Generator) -> None:
    import hashlib

    with np.load(path) as held:
        arrays = dict(held)
    name = pick(sorted(arrays), random)
    array = arrays[name]
    values: tuple[Any, ...] = (np.zeros(3), np.zeros((0, 3)), np.full(array.shape, np.nan), np.array("x" * 80))
    values += (np.full(array.shape, 1e300), np.full(array.shape, -5, np.int64), np.array(list(TEXTS[:3])))
    arrays[name] = pick((*values, array[:1] if array.ndim else array), random)
    if random.random() < 0.1:
        del arrays[name]
    np.savez_compressed(path, allow_pickle=False, **arrays)
    before = json.loads(index.read_text())
    for entry in before["kinds"]:
        entry["shape"] = hashlib.sha256(path.read_bytes()).hexdigest()
    index.write_text(json.dumps(before))


def read_library(folder: Path, random: np.random.Generator) -> None:
    """List the library, load one of its kinds, and weight random draws with the log."""
    from nimbus.datagen.objects.libraries import open_library
    from nimbus.datagen.propose.drawing_weights import read_weights

    if random.random() < 0.3:
        read_weights([folder / "log"])
    library = open_library(f"{folder / 'lib'}/")
    for kind in library.kinds:
        library.model(kind, 0)
    command("objects", folder / "lib")


def make_store(folder: Path) -> None:
    """Write a dataset into a store."""
    from tools.fuzz.datasets import make

    make(folder)


def spoil_store(folder: Path, random: np.random.Generator) -> str:
    """Damage a description, or add objects that no dataset contains."""
    if random.random() < 0.3:
        name = pick(
            ("origin.json", "etags.json", "locks/000", "blocks/x", "a//b", "episodes/x", "meta/info.json"), random
        )
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pick(('{"address": "file:///etc"}', "[" * 9999, "{}", *TEXTS[:3]), random))
        if random.random() < 0.5:
            (folder / "dataset.json").unlink()
            (folder / "meta").mkdir(exist_ok=True)
            (folder / "meta" / "info.json").write_text("{}")
        return f"an object {name}"
    path = folder / pick(("dataset.json", "dataset.json", "ledger.sqlite", "lock.json"), random)
    path.touch()
    if path.suffix == ".json" and path.stat().st_size:
        spoil_json(path, random)
    elif path.name == "lock.json":
        path.write_text(pick(("{}", "[]", "[" * 9999, '{"owner": 1}', *TEXTS[:3]), random))
    else:
        spoil_file(path, random)
    return path.name


def read_store(folder: Path, random: np.random.Generator) -> None:
    """Open the folder as a store and read its dataset; a second read compares the local copy with the store."""
    from nimbus.datagen.store.remote import working_copy
    from nimbus.datagen.store.remote.address import parse_address
    from nimbus.datagen.store.remote.object_store import ObjectStore
    from nimbus.datagen.store.remote.writer_lock import WriterLock
    from nimbus.datagen.store.verify import verify

    address = parse_address(f"file://{folder}")
    store = ObjectStore(address)
    WriterLock(store, "me").read()
    copy = working_copy.copy_folder(address)
    working_copy.note_origin(copy, str(address))
    for _ in range(2):
        working_copy._refresh(copy, store, has_ledger=True, may_be_empty=False)
        verify(copy)
        if working_copy.address_of(copy) != str(address):
            raise AssertionError("the copy stands for another place")


def _keep_one(folder: Path, random: np.random.Generator) -> Path:
    path = pick(files_of(folder), random)
    for other in files_of(folder):
        if other != path:
            other.unlink()
    return path


SORTS = (
    Sort(name="splats", make=make_splats, spoil=spoil_splats, read=read_splats),
    Sort(name="scenes", make=make_scenes, spoil=spoil_scene, read=read_scene),
    Sort(name="libraries", make=make_library, spoil=spoil_library, read=read_library),
    Sort(name="stores", make=make_store, spoil=spoil_store, read=read_store),
)
