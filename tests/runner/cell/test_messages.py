from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.runner.cell.transport.messages import (
    Idle,
    Order,
    PlanMade,
    PlanOrder,
    RenderOrder,
    WorkerError,
    all_from_bytes,
    from_bytes,
    to_bytes,
)

PLAIN = st.text(st.characters(exclude_categories=["Cs"]))
SECONDS = st.floats(allow_nan=False, allow_infinity=False)
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
def test_what_is_said_is_understood(message: object) -> None:
    assert from_bytes(to_bytes(message)) == message


@given(st.lists(MESSAGES, min_size=1, max_size=4))
def test_several_messages_are_a_line_each(messages: list[object]) -> None:
    assert all_from_bytes(b"\n".join(map(to_bytes, messages))) == messages


def test_a_path_arrives_as_text_and_other_than_plain_values_are_refused() -> None:
    assert from_bytes(to_bytes(WorkerError(sort="input", line=Path("a/b")))).line == "a/b"  # pyright: ignore
    with pytest.raises(ValueError, match="object"):
        to_bytes(WorkerError(sort="input", line=object()))  # pyright: ignore


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "unknown message"),
        (b"{", "unknown message"),
        (b"[1]", "unknown message"),
        (b"Stopp {}", "unknown message b'Stopp'"),
        (b"Idle", "Invalid JSON"),
        (b"Idle \xff", "Invalid JSON"),
        (b"Idle " + b"[" * 100_000, "Invalid JSON"),
        (b"Idle [1]", "should be an object"),
        (b"Idle {}", "done: Field required"),
    ],
)
def test_what_is_no_message_is_refused(content: bytes, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        from_bytes(content)
