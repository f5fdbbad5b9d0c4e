"""Shape of a moving body, as given in a task file. This module imports no heavy libraries."""

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
    """Highest step that the body can climb [m]."""
