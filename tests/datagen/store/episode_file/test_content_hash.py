from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.observation import Observation
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.stages import Rendered
from nimbus.datagen.store.episode_file.content_check import combine, content_hash
from nimbus.datagen.store.episode_file.content_hash import ContentHash
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import dataset_hashes
from nimbus.datagen.store.writer import Hdf5Writer
from tests.support.synthetic import failure, make_observations, make_rendered, open_dataset, write_dataset


def hashes(folder: Path, items: list[Rendered]) -> dict[str, str]:
    write_dataset(folder, items)
    return dataset_hashes(folder)


def test_the_hash_in_the_ledger_is_the_one_that_reading_gives(tmp_path: Path) -> None:
    stored = write_dataset(tmp_path / "data")
    ledger = Ledger(tmp_path / "data", read_only=True)
    recorded = {attempt.path: attempt.sha256 for attempt in ledger.stored()}
    ledger.close()
    for item in stored:
        if item.path:
            with EpisodeFile(tmp_path / "data" / item.path) as episode:
                assert content_hash(episode).hexdigest() == recorded[item.path]


def test_order_runs_compression_chunks_times_and_versions_do_not_enter(tmp_path: Path) -> None:
    one = hashes(tmp_path / "one", [make_rendered(0), make_rendered(1), make_rendered(2, outcome=failure())])
    other = make_rendered(0)
    other = replace(
        other,
        scene=replace(other.scene, provenance=Provenance(task_text="# moved", task_hash="x", versions={"numpy": "9"})),
        trajectory=replace(other.trajectory, plan_statistics={"plan_time": np.array([9.0])}),
        observations=make_observations(20, chunk=3),
        times={"plan": 99.0},
        attempt=2,
    )
    write_dataset(tmp_path / "two", [make_rendered(1)])
    with open_dataset(tmp_path / "two") as dataset:
        writer = Hdf5Writer(dataset, compression=6)
        list(writer.process(other))
        writer.close()
    assert dataset_hashes(tmp_path / "two") == one


def with_layout(item: Rendered, layout: Layout) -> Rendered:
    return replace(item, layout=layout)


def changed_pixel() -> Rendered:
    def images() -> list[Observation]:
        observations = list(make_observations(20))
        rgb = observations[1].cameras["wrist"].rgb.copy()
        rgb[2, 7, 5, 1] ^= 1
        frames = replace(observations[1].cameras["wrist"], rgb=rgb)
        observations[1] = replace(observations[1], cameras=observations[1].cameras | {"wrist": frames})
        return observations

    return replace(make_rendered(0), observations=iter(images()))


def changed_action() -> Rendered:
    item = make_rendered(0)
    actions = item.trajectory.actions.copy()
    actions[3, 2] = np.nextafter(actions[3, 2], 10)
    return replace(item, trajectory=replace(item.trajectory, actions=actions))


def changed_instruction() -> Rendered:
    item = make_rendered(0)
    visual = replace(item.layout.visual, instruction="tidy up")
    return with_layout(item, replace(item.layout, visual=visual))


def changed_name() -> Rendered:
    item = make_rendered(0)
    return replace(item, trajectory=replace(item.trajectory, body_names=("base", *item.trajectory.body_names[1:])))


@pytest.mark.parametrize(
    ("change", "levels"),
    [
        (changed_pixel, {"D1"}),
        (changed_action, {"D0", "D1"}),
        (changed_instruction, {"D0", "D1"}),
        (changed_name, {"D0", "D1"}),
    ],
)
def test_the_smallest_change_shows_at_its_level_and_above(tmp_path: Path, change, levels: set[str]) -> None:
    before = hashes(tmp_path / "before", [make_rendered(0)])
    after = hashes(tmp_path / "after", [change()])
    assert {level for level in before if before[level] != after[level]} == levels


def test_a_missing_episode_shows(tmp_path: Path) -> None:
    both = hashes(tmp_path / "both", [make_rendered(0), make_rendered(1)])
    one = hashes(tmp_path / "one", [make_rendered(0)])
    assert both["D0"] != one["D0"] and both["D1"] != one["D1"]


@given(rows=st.integers(0, 9), cuts=st.lists(st.integers(0, 9), max_size=4))
def test_rows_may_arrive_in_any_pieces(rows: int, cuts: list[int]) -> None:
    values = np.arange(rows * 6, dtype=np.int64).reshape(rows, 2, 3)
    whole, pieces = ContentHash(), ContentHash()
    whole.array("action", values)
    pieces.begin("action", "int64", values.shape)
    edges = [0, *sorted(min(cut, rows) for cut in cuts), rows]
    for start, stop in zip(edges, edges[1:], strict=False):
        pieces.extend("action", values[start:stop])
    assert whole.hexdigest() == pieces.hexdigest()


@given(left=st.lists(st.text(max_size=4), max_size=4), right=st.lists(st.text(max_size=4), max_size=4))
def test_texts_never_run_into_each_other(left: list[str], right: list[str]) -> None:
    one, other = ContentHash(), ContentHash()
    one.texts("names/bodies", left)
    other.texts("names/bodies", right)
    assert (one.hexdigest() == other.hexdigest()) == (left == right)


def test_episodes_combine_in_the_order_of_their_ids() -> None:
    assert combine({"a": "1", "b": "2"}) == combine({"b": "2", "a": "1"}) != combine({"a": "2", "b": "1"})
