"""View of a dataset: forms of the actions, states and further signals of an export or a reader."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class SignalView:
    """Choice of signals; the stored ones by default."""

    actions: str = "joint"
    """Control mode: ``joint``, ``joint_relative``, ``tool_pose`` or ``tool_delta``."""
    rotation: str = "6d"
    """Form of the rotations of tools: ``6d``, ``quaternion`` or ``euler``."""
    state: str = "measured"
    """``measured`` or ``commanded``, see :class:`nimbus.datagen.policies.state_forms.StateForm`."""
    environment_state: bool = False
    """True to include features of the scene, see :class:`nimbus.datagen.policies.features.SceneFeatures`."""
    done: bool = False
    """True to include ``next.done`` and ``next.success``."""

    def __str__(self) -> str:
        """Describe the actions and states."""
        turns = f" with rotations as {self.rotation}" if self.actions.startswith("tool") else ""
        return f"{self.actions}{turns}, state {self.state}"

    def acts_like(self, other: SignalView) -> bool:
        """Return True if two views have the same actions and states."""
        return str(self) == str(other)

    @property
    def is_stored(self) -> bool:
        """True if the signals are exactly the stored ones."""
        return self == SignalView()

    def told(self) -> dict[str, Any]:
        """Settings that differ from the defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(SignalView(), name)}
