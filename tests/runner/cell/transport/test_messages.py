from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cell.transport.messages import (
    Idle,
    Message,
    Order,
    PlanMade,
    PlanOrder,
    Recorded,
    RenderOrder,
    WorkerError,
    all_from_bytes,
    from_bytes,
    pack,
    to_bytes,
)

PLAIN = st.text(st.characters(exclude_categories=["Cs"]))
SECONDS = st.floats(allow_nan=False)
SPANS = st.lists(st.tuples(PLAIN, SECONDS, SECONDS), max_size=4).map(tuple)
WHOLE = st.integers(-(2**63), 2**63 - 1)
VARIANTS = st.lists(WHOLE, max_size=4).map(tuple)
ORDERS = st.lists(st.builds(Order, index=WHOLE, variants=VARIANTS, lease=WHOLE, stored=PLAIN), max_size=4).map(tuple)
MESSAGES = (
    st.builds(WorkerError, sort=PLAIN, line=PLAIN, traceback=PLAIN, code=WHOLE)
    | st.builds(Idle, spans=SPANS, gaps=SPANS, done=WHOLE, seconds=SECONDS)
    | st.builds(PlanMade, index=WHOLE, lease=WHOLE, spilled=st.booleans())
    | st.builds(PlanOrder, orders=ORDERS)
    | st.builds(RenderOrder, orders=ORDERS)
)


@given(MESSAGES)
def test_message_survives_a_round_trip(message: Message) -> None:
    assert from_bytes(to_bytes(message)) == message


@given(st.lists(MESSAGES, min_size=1, max_size=4))
def test_packed_messages_share_a_datagram(messages: list[Message]) -> None:
    assert all_from_bytes(to_bytes(*map(pack, messages))) == messages


def test_nan_and_integers_survive_in_an_attempt() -> None:
    drawn = {"a": float("nan"), "b": float("inf"), "c": 1, "d": 1.0}
    attempt = Attempt(
        episode_id="e", task="t", seed=0, idx=0, variant=0, attempt=0, final=True, success=False, drawn=drawn
    )
    (found,) = from_bytes(to_bytes(Recorded(index=0, lease=1, attempts=(attempt,)))).attempts  # pyright: ignore
    assert repr(found) == repr(attempt)


def test_paths_and_numpy_numbers_become_plain_values() -> None:
    trouble = WorkerError(sort="input", line=cast(Any, Path("a/b")), code=cast(Any, np.int64(2)))
    assert from_bytes(to_bytes(trouble)) == WorkerError(sort="input", line="a/b", code=2)
    with pytest.raises(TypeError, match="object"):
        to_bytes(WorkerError(sort="input", line=cast(Any, object())))


def packed(*values: object) -> bytes:
    return msgspec.msgpack.encode(values)


IDLE = {"type": "Idle", "done": 1}
ATTEMPT = {"episode_id": "e", "task": "t", "seed": 0, "idx": 0, "variant": 0, "attempt": 0, "final": True}
WRITTEN = {"type": "EpisodeWritten", "index": 0, "lease": 1, "path": "stage/a", "attempt": ATTEMPT}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "truncated"),
        (b'Idle {"done": 0}', "Expected `array`, got `int`"),
        (packed(), "0 messages, expected one"),
        (packed(IDLE, IDLE), "2 messages, expected one"),
        (packed({"type": "Stopp"}), "Invalid value 'Stopp'"),
        (packed({"done": 1}), "missing required field `type`"),
        (packed([1]), "Expected `object`, got `array`"),
        (packed({"type": "Idle"}), "missing required field `done`"),
        (packed(IDLE | {"further": 1}), "unknown field `further`"),
        (packed(IDLE | {"done": "1"}), "Expected `int`, got `str`"),
        (packed(IDLE | {"done": True}), "Expected `int`, got `bool`"),
        (packed(IDLE | {"spans": [["plan", 1.0]]}), "Expected `array` of length 3"),
        (packed(WRITTEN), "missing required field `success`"),
        (
            packed(WRITTEN | {"attempt": WRITTEN["attempt"] | {"success": True, "path": "x"}}),
            "'x' is not the path of an episode, episodes/NAME.hdf5",
        ),
        (packed(IDLE)[:-1], "truncated"),
        (packed(IDLE) + b"1", "trailing characters"),
        (b"\xdd\xff\xff\xff\xff", "truncated"),
        (b"\x91" * 100_000, "Expected `object`, got `array`"),
        (
            packed({"type": "Loaded", "origin": {"reach": {"a": "?"}}}).replace(b"\xa1?", b"\x91" * 100_000),
            "nested too deeply",
        ),
    ],
)
def test_malformed_content_is_refused(content: bytes, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        from_bytes(content)
