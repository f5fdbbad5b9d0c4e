"""Short chaos test of a cluster over sockets: nothing is lost, doubled, different or left over.

``tests/runner/cluster/test_local_cluster.py`` has a test of each single fault.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.cluster_chaos import light


@pytest.mark.slow
@pytest.mark.long
def test_killed_and_frozen_processes_harm_nothing(tmp_path: Path):
    given = Namespace(episodes=12, kills=6, nodes=2, seed=0, longest=2.0)
    found = light(tmp_path, given, None)
    assert found.is_good, found
    assert found.stored == found.asked == 12 and sum(found.injected.values()) >= 4
