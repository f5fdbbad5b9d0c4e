"""Nodes that upload into an object store make the dataset of one process, whatever fails between node and store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.traffic import read_traffic
from nimbus.datagen.store.remote.working_copy import open_dataset
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cell.store_run import run_into_store
from nimbus.runner.cluster.local_cluster import nodes_folder
from tests.support.cells import finish_here, make_spec
from tests.support.clusters import ClusterRun

EPISODES = 4


def run(address: str, tmp_path: Path, **values: dict[str, str]) -> None:
    """Run nodes into a store, and check that they leave nothing behind."""
    spec = make_spec(tmp_path / "data", episodes=EPISODES)

    def share(folder: Path) -> int:
        cluster = ClusterRun(replace(spec, folder=str(folder)), environment=lambda number: values.get(f"n{number}", {}))
        end = cluster.run()
        assert end.state == "done", end.line
        assert not nodes_folder(folder).exists() and not list(folder.glob("episodes/*"))
        return 0

    assert run_into_store(parse_address(address), share) == 0


@pytest.mark.slow
def test_nodes_store_what_one_process_makes(address: str, tmp_path: Path):
    """An agent without keys dies between an upload and its report; the same command again finds nothing to do."""
    keyless = {"NIMBUS_UPLOADS": "signed", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    run(address, tmp_path, n1=keyless | {"NIMBUS_FAILPOINT": "after_upload:2"})
    alone = finish_here(make_spec(tmp_path / "alone", episodes=EPISODES))
    copy = open_dataset(address)
    assert dataset_hashes(copy) == alone and verify(copy).problems == ()
    names = {name for name, _ in ObjectStore(parse_address(address)).names("episodes")}
    assert len(names) == EPISODES
    assert read_traffic(copy).objects_sent == EPISODES  # by the nodes
    run(address, tmp_path)
    assert {name for name, _ in ObjectStore(parse_address(address)).names("episodes")} == names
