"""Shape of a body that moves through scenes; apart from what needs heavy libraries, as task files give it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BodyShape:
    """An upright cylinder that goes over small steps."""

    radius: float
    """[m]"""
    height: float
    """[m]"""
    step: float
    """Highest step that it goes over [m]."""
