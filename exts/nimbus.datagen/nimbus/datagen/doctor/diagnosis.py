"""Result of an examination. Imports no heavy libraries, so that a malformed file is reported quickly."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import Diagnostic, InputError

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import CameraView
    from nimbus.datagen.doctor.forecast import Forecast


def finding_from_error(check: str, error: InputError) -> Diagnostic:
    """Convert the error that ended a check to a diagnostic."""
    return replace(error.diagnostic, check=check)


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Result of an examination."""

    task: str
    findings: tuple[Diagnostic, ...]
    reach: dict[str, Any] = field(default_factory=dict)
    """Reach map of each region: ``origin``, ``size``, ``cell`` [m], ``reached``."""
    grasps: dict[str, dict[str, int]] = field(default_factory=dict)
    """Number of grasps by group and variant (``can 3``), at most :data:`~nimbus.datagen.doctor.grasps.ENOUGH` each."""
    seen: dict[str, dict[str, float]] = field(default_factory=dict)
    """Fraction of each region that a fixed camera sees, by camera."""
    views: dict[str, CameraView] = field(default_factory=dict)
    """Sizes of things in the images of each camera, and things out of view, by its name."""
    scenes: tuple[str, ...] = ()
    """Line about each scene of a navigation task that was opened."""
    forecast: Forecast | None = None
    """Forecast; None if a failure is certain."""
    seconds: dict[str, float] = field(default_factory=dict)
    """CPU time of each check [s]."""

    @classmethod
    def of_malformed(cls, task: str, error: InputError) -> Diagnosis:
        """Make the diagnosis of a file that is not a valid task.

        Args:
            task: Name of the task.
            error: The first error in the file.
        """
        return cls(task=task, findings=(finding_from_error("schema", error),))

    @property
    def certain(self) -> tuple[Diagnostic, ...]:
        """Findings that make success impossible in every episode."""
        return tuple(found for found in self.findings if found.is_certain)

    @property
    def malformed(self) -> Diagnostic | None:
        """Error of a file that is not a valid task, so nothing else was checked; None for a valid task."""
        return next((found for found in self.findings if found.check == "schema"), None)

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        findings = [
            {
                "check": found.check,
                "certain": found.is_certain,
                "field": found.field,
                "where": found.where,
                "what": found.what,
                "instead": found.instead,
            }
            for found in self.findings
        ]
        return asdict(self) | {"findings": findings, "ok": not self.findings, "works": not self.certain}
