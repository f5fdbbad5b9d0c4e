"""Episodes with a push are in a separate split, after the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nimbus.datagen.datasets.export.source import open_source
from nimbus.datagen.datasets.filter.expression import Condition
from nimbus.datagen.datasets.filter.native import filter_native
from nimbus.datagen.datasets.training.native import StoredFrames
from nimbus.datagen.episode.trajectory import DISTURBED
from nimbus.datagen.stages import Rendered
from tests.support.synthetic import failure, make_rendered, write_dataset


def pushed(index: int) -> Rendered:
    made = make_rendered(index)
    first, *others = made.trajectory.segments
    early = replace(first, stop=3, skill=DISTURBED, phase="pushed")
    segments = (early, replace(first, start=3), *others)
    return replace(made, trajectory=replace(made.trajectory, segments=segments))


def test_recoveries_are_behind_and_can_be_picked(tmp_path: Path):
    folder = tmp_path / "data"
    write_dataset(folder, [make_rendered(0), pushed(1), make_rendered(2), make_rendered(3, outcome=failure())])
    source = open_source(folder)
    assert [item.index for item in source.items] == [0, 2, 1]
    assert source.splits == {"train": "0:2", "recovery": "2:3"}
    assert StoredFrames(folder).facts()["split"].tolist() == ["train", "train", "recovery"]
    kept = filter_native(folder, tmp_path / "plain", Condition("split == 'train'"))
    assert (kept.episode_count, open_source(tmp_path / "plain").splits) == (2, {"train": "0:2"})
