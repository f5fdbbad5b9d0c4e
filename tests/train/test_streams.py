"""Each step has the same samples on any number of ranks, and an epoch contains every sample once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.errors import InputError
from nimbus.train.sequences import make_batch, pad_tokens, padding_share, scaling_of, to_tokens
from nimbus.train.streams import Streams
from tests.support.synthetic import make_rendered, write_dataset

COUNT, SIZE = 4, 3


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("streams")
    write_dataset(folder, [make_rendered(row, steps=9 + row) for row in range(3)])
    with Reader(folder, windows={"action": range(4)}) as reader:
        yield reader


def indices(reader: Reader, steps: range, ranks: int) -> list[list[int]]:
    streams = [Streams(reader, seed=3, count=COUNT, size=SIZE, rank=rank, ranks=ranks) for rank in range(ranks)]
    found = []
    for step in steps:
        parts = [samples for one in streams for samples in one.read(step)]
        found.append(sorted(sample["index"] for samples in parts for sample in samples))
        assert len(found[-1]) == streams[0].sample_count(step)
    for one in streams:
        one.close()
    return found


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_steps_are_the_same_on_any_ranks(reader: Reader, ranks: int):
    """With 30 samples on 4 streams, the last step of an epoch is short, and streams differ by one sample."""
    alone = indices(reader, range(6), 1)
    assert sorted(sum(alone[:3], [])) == sorted(sum(alone[3:], [])) == list(range(30))
    assert alone[0] != alone[3], "each epoch has an order of its own"
    assert indices(reader, range(6), ranks) == alone


def test_streams_begin_at_any_step(reader: Reader):
    whole = indices(reader, range(6), 2)
    assert [indices(reader, range(step, 6), 4) for step in range(6)] == [whole[step:] for step in range(6)]


@pytest.mark.parametrize("ranks", [0, -1, 5])
def test_too_few_or_many_ranks_are_refused(reader: Reader, ranks: int):
    with pytest.raises(InputError, match=rf"--ranks: {ranks} ranks; write 1 to 4, the number of --streams"):
        Streams(reader, seed=0, count=COUNT, size=SIZE, ranks=ranks)


def test_fewer_samples_than_streams_are_refused(reader: Reader):
    with pytest.raises(InputError, match="has 30 samples, but a step takes 31 micro-batches"):
        Streams(reader, seed=0, count=31, size=1)


def test_noise_follows_the_sample_and_not_the_batch(reader: Reader):
    samples = [reader[row] for row in (4, 7, 9)]
    together = make_batch(samples, ("front", "wrist"), seed=1, epoch=2)
    alone = make_batch(samples[1:2], ("front", "wrist"), seed=1, epoch=2)
    assert together["pictures"].shape == (3, 2, 48, 64, 3) and together["noise"].shape == (3, 4, 8)
    assert (together["noise"][1] == alone["noise"][0]).all() and together["time"][1] == alone["time"][0]
    assert (make_batch(samples[1:2], ("front",), seed=1, epoch=3)["noise"] != alone["noise"]).any()


def test_instructions_become_padded_bytes():
    assert pad_tokens(["ab", "é"]).tolist() == [[98, 99], [196, 170]] and pad_tokens(["a", "abc"])[0].tolist() == [
        98,
        0,
        0,
    ]
    with pytest.raises(InputError, match="an instruction has 300 bytes: 'aaa.*write at most 256 bytes"):
        to_tokens("a" * 300)


def test_padding_is_measured_in_batches():
    assert padding_share([50], batch=8) == 0.0
    assert padding_share([50, 100], batch=64) == pytest.approx(0.25, abs=0.01)


def test_scaling_is_of_all_rows(reader: Reader):
    scaling = scaling_of(reader)
    assert set(scaling) == {"observation.state", "action"}
    assert all((scale > 0).all() and mean.shape == scale.shape for mean, scale in scaling.values())
