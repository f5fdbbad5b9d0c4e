"""Links in folders of others that hold no dataset, such as recordings and policies, lead to no file elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nimbus.datagen.datasets.export.publication import read_manifest
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.language_model.records import ModelQuestion, RecordFolder
from nimbus.datagen.policies.state_policy import StatePolicy
from nimbus.datagen.propose.drawing_weights import read_weights
from nimbus.datagen.teleoperate.recording import RecordingFolder
from nimbus.runner.evaluation.results import read_evaluation
from tests.support.refusals import refusal
from tools.sources import modules, parse

QUESTION = ModelQuestion(system="", request="", schema={})
SETTINGS = '{"task": "t", "robot": "r", "rate": 15, "joint_names": [], "action_names": [], "horizon": 1, "limit": 1}'
RESULTS = (
    '{"evaluation": {"task": "t", "task_hash": "", "policy": "p", "split": "s", "seed": 0, "execute": 1, "limit": 1}}'
)
FACTS = '{"step": 1, "tensors": "step-00000001.safetensors", "training": {}}'


def load_checkpoint(folder: Path) -> object:
    pytest.importorskip("torch")
    from nimbus.train.checkpoint import load

    return load(folder, training={})


@pytest.mark.parametrize(
    ("name", "read", "beside"),
    [
        ("recording_000000.json", lambda folder: RecordingFolder(folder).read(0), {}),
        ("unfinished.json", lambda folder: RecordingFolder(folder).unfinished(), {}),
        ("evaluation.json", read_evaluation, {}),
        ("faults.json", lambda folder: read_evaluation(folder / "mine.json"), {"mine.json": RESULTS}),
        ("policy.json", StatePolicy, {}),
        ("weights.npz", StatePolicy, {"policy.json": SETTINGS}),
        (f"{QUESTION.digest}.json", lambda folder: RecordFolder(folder, is_complete=True).find(QUESTION), {}),
        ("proposals.jsonl", lambda folder: read_weights([folder]), {}),
        ("nimbus.json", read_manifest, {}),
        ("checkpoint.json", load_checkpoint, {}),
        ("step-00000001.safetensors", load_checkpoint, {"checkpoint.json": FACTS}),
    ],
)
def test_links_out_of_named_folders_are_not_read(
    name: str, read: Callable[[Path], object], beside: dict[str, str], tmp_path: Path
):
    """An archive keeps links; the content of a private file would enter a dataset, a message or a hash."""
    (tmp_path / "private").write_text("{}")
    folder = tmp_path / "folder"
    folder.mkdir()
    for other, text in beside.items():
        (folder / other).write_text(text)
    (folder / name).symlink_to("../private")
    assert "this is a link out of its folder" in refusal(read, folder)


def test_links_inside_a_named_folder_are_read(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a").symlink_to("b")
    (tmp_path / "link").symlink_to("folder")
    assert file_in(tmp_path / "link", "a") == tmp_path / "link/a"


IN_DATASET = "a dataset or an improvement, which `check_own_file` knows"
OTHERWISE = {
    "nimbus.datagen.datasets.convert.convert": IN_DATASET,
    "nimbus.datagen.datasets.mirror": IN_DATASET,
    "nimbus.datagen.datasets.quality.lerobot": IN_DATASET,
    "nimbus.datagen.datasets.training.sharded": "`DatasetPaths` checks the path",
    "nimbus.datagen.meshes.mesh_folder": "`is_file_below` comes first",
    "nimbus.datagen.objects.imported.read": "as above",
    "nimbus.datagen.objects.prepared.index": "`check_below` comes first",
    "nimbus.datagen.objects.prepared.library": "as above",
    "nimbus.datagen.store.info": IN_DATASET,
    "nimbus.datagen.store.remote.cache_root": "the private cache",
    "nimbus.datagen.store.remote.working_copy": "as above",
    "nimbus.runner.evaluation.training_log": "`refuse_links` comes first",
    "nimbus.runner.improvement.learner": IN_DATASET,
    "nimbus.runner.improvement.loop": IN_DATASET,
    "nimbus.runner.improvement.times": IN_DATASET,
    "nimbus.runner.report.card": IN_DATASET,
}
"""Modules that read a file of a folder by its name with another check."""
_READERS = {"read_bytes", "read_text", "read_plain", "read_typed", "read_npz", "check_regular"}


def composed_reads(tree: ast.AST) -> Iterator[str]:
    """Yield calls that read a path which is composed in the call or in the statement before it."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            composed = {
                ast.unparse(node.targets[0])
                for node in ast.walk(function)
                if isinstance(node, ast.Assign) and _is_composed(node.value)
            }
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in _READERS and not _is_unfollowed(node):
                    if any(_is_composed(one) or ast.unparse(one) in composed for one in node.args):
                        yield ast.unparse(node)


def _is_composed(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def _is_unfollowed(node: ast.Call) -> bool:
    return any(keyword.arg == "follow" and ast.unparse(keyword.value) == "False" for keyword in node.keywords)


def test_files_of_named_folders_are_found_by_one_function():
    found = {name: list(composed_reads(parse(path))) for name, path in modules().items()}
    assert {name for name, calls in found.items() if calls} == set(OTHERWISE)


@pytest.mark.parametrize(
    "line", ["return read_typed(Kind, folder / 'a')", "path = folder / NAME\n  return read_plain(path)"]
)
def test_reads_without_the_function_are_found(line: str):
    assert list(composed_reads(ast.parse(f"def f():\n  {line}")))
