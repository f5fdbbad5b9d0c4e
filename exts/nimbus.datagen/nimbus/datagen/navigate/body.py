"""Shape of a moving body, as task files give it; imports no heavy libraries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BodyShape:
    """Upright cylinder that climbs small steps."""

    radius: float
    """Radius [m]."""
    height: float
    """Height [m]."""
    step: float
    """Highest step that it can climb [m]."""
