"""Refused input: the line that a user reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nimbus.datagen.errors import InputError


def refusal(call: Callable[..., object], *args: Any, **values: Any) -> str:
    """Return the line with which a call refuses its input."""
    with pytest.raises(InputError) as caught:
        call(*args, **values)
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2
    return str(caught.value)
