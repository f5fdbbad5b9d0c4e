"""Random streams have addresses, so no draw depends on another one."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.random_streams import generator

seeds = st.integers(0, 2**64)
addresses = st.lists(st.integers() | st.text(max_size=8), max_size=4).map(tuple)


@given(seeds, addresses)
def test_the_same_address_gives_the_same_numbers(seed, address):
    assert np.array_equal(generator(seed, *address).uniform(size=8), generator(seed, *address).uniform(size=8))


@given(seeds, addresses, seeds, addresses)
def test_different_addresses_give_different_numbers(seed, address, other_seed, other_address):
    same = (seed, *address) == (other_seed, *other_address)
    one, other = generator(seed, *address).uniform(size=4), generator(other_seed, *other_address).uniform(size=4)
    assert np.array_equal(one, other) == same


def test_addresses_that_read_alike_are_different_ones():
    alike = [(1, 2), (1, "2"), (12,), (1, 2, ""), ("1", 2), ("1 2",), ("12",), (1, "int:2")]
    assert len({generator(0, *address).uniform() for address in alike}) == len(alike)


@given(seeds, st.lists(addresses, unique=True, min_size=2, max_size=6), st.integers(0, 100))
def test_draws_elsewhere_move_nothing(seed, sites, extra):
    alone = {site: generator(seed, *site).normal() for site in sites}
    streams = {site: generator(seed, *site) for site in sites}
    streams[sites[0]].normal(size=extra)
    assert all(streams[site].normal() == alone[site] for site in reversed(sites[1:]))


def test_another_process_draws_the_same_numbers():
    code = "from nimbus.datagen.random_streams import generator; print(generator(7, 3, 'pose').random(4).tolist())"
    line = [sys.executable, "-c", code]
    path = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "5"}
    said = subprocess.run(line, env=path, capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(generator(7, 3, "pose").random(4).tolist())
