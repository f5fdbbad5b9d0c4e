"""Signatures of the head: a node without keys may create objects of its leased episodes, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.errors import StoreAwayError
from nimbus.datagen.store.remote.address import parse_address
from nimbus.runner.cluster.head_process import HeadServer
from nimbus.runner.cluster.line_socket import HeadClient
from nimbus.runner.cluster.messages import Answer, Request, SignatureRequest, Signed
from nimbus.runner.cluster.signing import HeadSignatures, is_allowed, needs_signatures
from tests.support.cells import make_spec
from tests.support.clusters import job_of

EPISODE = "episodes/sort_trash-s0-000007-v0-0123abcd.hdf5"


@pytest.mark.parametrize(
    ("name", "index"),
    [
        (EPISODE, 7),
        ("episodes/sort_trash-s0-000007-v0-0123abcd.front.mp4", 7),
        ("failures/sort_trash-s0-1234567-v3-0123abcd.a2.hdf5", 1234567),
        ("episodes/two-000001-v0-words-s0-000007-v0-0123abcd.hdf5", 7),
    ],
)
def test_node_may_create_the_episodes_it_holds(name: str, index: int):
    assert is_allowed(name, "n1", lambda held: held == index)
    assert not is_allowed(name, "n1", lambda held: held != index)


@pytest.mark.parametrize(
    "name",
    [
        "ledger.sqlite",
        "dataset.json",
        "lock.json",
        "episodes/../ledger.sqlite",
        "episodes/x/sort_trash-s0-000007-v0-0123abcd.hdf5",
        "incidents/n2-hang/log.txt",
        "incidents/n1-hang/../../dataset.json",
        "incidents/n1-hang",
        "",
    ],
)
def test_other_names_are_not_signed(name: str):
    assert not is_allowed(name, "n1", lambda _: True)


def test_node_may_create_its_own_incidents():
    assert is_allowed("incidents/n1-20261126-101500-3-hang/worker/stack.txt", "n1", lambda _: False)


@pytest.mark.parametrize("node", ["n", "n1", "n1-20261126"])
def test_node_with_a_shorter_name_creates_none_of_another(node: str):
    assert not is_allowed("incidents/n1-b-20261126-101500-3-hang/stack.txt", node, lambda _: False)


def test_head_signs_nothing_in_a_folder(tmp_path: Path):
    server = HeadServer(job_of(make_spec(tmp_path / "data")), tmp_path / "s")
    answers: list[Answer] = []
    try:
        server.head.balance.join("n1", 1, 0.0)
        server.head.take(SignatureRequest(node="n1", group="drive", name=EPISODE, method="PUT"), answers.append, 0.0)
    finally:
        server._close("interrupted")
    assert answers == [Signed()]


def test_refused_signature_is_asked_for_again():
    """The head restarted, and does not know the node's leases yet."""

    class Refusing(HeadClient):
        def ask(self, request: Request, *, patience: float = 1.0) -> Answer:
            return Signed()

    with pytest.raises(StoreAwayError, match="does not sign this now"):
        HeadSignatures("n1", Refusing(Path("none"))).ask("drive", EPISODE, "PUT")


def test_node_without_keys_asks_for_signatures(address: str, monkeypatch: pytest.MonkeyPatch):
    place = parse_address(address)
    assert not needs_signatures(place)
    monkeypatch.setenv("NIMBUS_UPLOADS", "signed")
    assert needs_signatures(place) and not needs_signatures(parse_address("gs://bucket/x"))
    monkeypatch.delenv("NIMBUS_UPLOADS")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "")
    assert needs_signatures(place)
