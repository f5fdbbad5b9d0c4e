"""Record periods in steps of physics, so that records do not drift."""

from __future__ import annotations


def steps_per_period(step_rate: float, rate: float) -> int:
    """Steps of physics in one record period; a ``ValueError`` when that is no whole number.

    Args:
        step_rate: Of physics [Hz].
        rate: Of records [Hz].
    """
    steps = round(step_rate / rate)
    if abs(steps * rate - step_rate) > 1e-9:
        raise ValueError(f"rate must divide {step_rate:g} Hz, got {rate:g} Hz")
    return steps
