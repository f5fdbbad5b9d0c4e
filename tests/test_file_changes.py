"""Only two modules make, move and remove files in datasets, and they follow no links."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.sources import modules, parse

ROOMS = (
    *("datagen.analysis", "datagen.datasets", "datagen.store", "datagen.ui.browser", "datagen.ui.runs"),
    *(
        "runner.cell",
        "runner.checks",
        "runner.cluster",
        "runner.commands",
        "runner.media",
        "runner.monitor",
        "runner.report",
    ),
)
"""Rooms that read or write datasets."""
TREE = "writes into the new folder of `publication.staging`, which holds no links"
STAGED = "writes into the new file that `own_files` or `atomic` made"
NAMED = "writes to the path that the user gave for it"
ALLOWED = {
    "datagen.datasets.convert": TREE,
    "datagen.datasets.export": TREE,
    "datagen.datasets.multiply.multiplied_task": "makes the folder beside the user's --out",
    "datagen.datasets.native_copy": TREE,
    "datagen.store.episode_file.encode": STAGED,
    "datagen.store.episode_file.h264": STAGED,
    "datagen.store.folder": "makes the folder that the user gave for the dataset",
    "datagen.store.remote.episode_manifest": "writes a private copy, which is then sent to the store",
    "datagen.ui.browser.cuts_tab": "saves cuts through their draft, which calls `atomic` and follows no link",
    "datagen.ui.browser.run_tab": "saves a task through its draft, which calls `atomic`",
    "datagen.ui.runs.launch": "writes into the private folder of its host",
    "runner.cell.incidents": "makes a folder that was not there, in one that is no link",
    "runner.cluster.line_socket": "removes the socket in the private folder of its cluster",
    "runner.cluster.local_cluster": "writes logs into the private folder of its cluster",
    "runner.cluster.node_agent": "makes the folder of its node, which is no dataset",
    "runner.cluster.on_ray": "writes logs and folders of nodes, apart from datasets",
    "runner.commands.export_usd": NAMED,
    "runner.commands.objects": NAMED,
    "runner.commands.propose": "makes the folder that the user gave for the tasks",
    "runner.media.preview": STAGED,
    "runner.media.rerun": NAMED,
    "runner.report.yields": NAMED,
}
"""Modules of those rooms that write files themselves, with the reason why that is safe."""
METHODS = {"write_text", "write_bytes", "unlink", "rmdir", "rename", "touch", "mkdir", "symlink_to", "hardlink_to"}
METHODS |= {"savez", "savez_compressed", "write_table", "ParquetWriter", "save"}
OF_OS = {"replace", "rename", "renames", "unlink", "remove", "removedirs", "rmdir", "link", "symlink", "truncate"}
OF_OS |= {"mkdir", "makedirs", "mknod", "mkfifo"}
OF_SHUTIL = {"rmtree", "copy", "copy2", "copyfile", "copytree", "move"}


def changes(tree: ast.AST) -> Iterator[str]:
    """Yield calls that make, change, move or remove a file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        library = owner.id if isinstance(owner, ast.Name) else ""
        if library in ("os", "shutil"):
            is_change = name in (OF_OS if library == "os" else OF_SHUTIL) or "O_CREAT" in ast.unparse(node)
        elif name in ("open", "File", "fdopen"):
            values = (*node.args, *(part.value for part in node.keywords))
            words = [value.value for value in values if isinstance(value, ast.Constant)]
            is_change = any(isinstance(word, str) and len(word) <= 3 and set(word) & set("wax+") for word in words)
        else:
            is_change = name in METHODS
        if is_change:
            yield f"{node.lineno}: {ast.unparse(node.func)}"


def test_datasets_are_changed_in_two_modules():
    """Listed calls have a reason; everything else calls `files.own_files` and `files.atomic`."""
    others = [
        f"{name}:{found}"
        for name, path in modules().items()
        if (short := name.removeprefix("nimbus.")).startswith(ROOMS)
        if not any(short == place or short.startswith(f"{place}.") for place in ALLOWED)
        for found in changes(parse(path))
        if not found.endswith("os.fdopen")  # of a descriptor, whose file is already open
    ]
    assert not others


def test_allowed_modules_do_write():
    """Reasons that are no longer needed must be removed."""
    writers = [name.removeprefix("nimbus.") for name, path in modules().items() if any(changes(parse(path)))]
    unneeded = [place for place in ALLOWED if not any(f"{name}.".startswith(f"{place}.") for name in writers)]
    assert not unneeded


def test_every_kind_of_change_is_found():
    lines = (
        *("open(path, 'w')", "path.open('ab')", "path.open(mode='x')", "h5py.File(sink, 'w')", "path.write_text('')"),
        *("os.replace(a, b)", "shutil.rmtree(a)", "a.unlink()", "os.open(a, os.O_CREAT)", "np.savez(a)", "a.mkdir()"),
    )
    assert [line for line in lines if not list(changes(ast.parse(line)))] == []
    assert not list(changes(ast.parse("open(path); path.open('rb'); text.replace('a', 'w'); os.open(a, os.O_RDONLY)")))


def test_filled_names_lead_to_no_other_folder():
    """A name of a dataset in a template may be ``..``, which only `make_place` and `copy_new` notice."""
    others = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if name.removeprefix("nimbus.").startswith(("datagen.datasets.convert", "datagen.datasets.export"))
        for node in ast.walk(parse(path))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Call)
        if ast.unparse(node.right.func).endswith((".format", "fill_template"))
    ]
    assert not others
