"""How a skill says that it cannot be done."""

from __future__ import annotations

from nimbus.datagen.trajectory import Reason


class SkillFailure(Exception):
    """A skill cannot be done here; the attempt ends with this reason."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
