"""The extension in a Kit that is played by the contract, its window open: what a test does to it and reads of it."""

from __future__ import annotations

from typing import Any

from contract.kit_behaviour import Kit
from desks import Jobs, LocalChannel

MENU = "Tools/Replicator/Nimbus"
UPDATE = "omni.kit.app:GLOBAL_EVENT_UPDATE"
TASK = """\
# A task with one of everything.
robot: panda
scene: tabletop
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.3, 0.4]}
  other: {on: table, center: [0.4, 0.3], size: [0.1, 0.1]}
objects:
  items: {library: trash, region: start}
steps:
  - for item in items:
      - pick: item
      - place: {object: item, into: "bins[item.class]"}
  - home
success:
  - for item in items:
      - inside: {object: item, container: "bins[item.class]"}
  - gripper_clear
cameras:
  front: {position: [1.5, 0.0, 0.9], look_at: [0.45, 0.0, 0.05], vertical_fov: 42 deg, size: [320, 240]}
  side: {position: [0.4, 1.2, 0.9], look_at: [0.45, 0.0, 0.05], vertical_fov: 42 deg, size: [320, 240]}
randomize: {light: {intensity: [60 %, 120 %]}, materials: {tint: 25 %}}
instructions: ["Sort the trash."]
"""


class Started:
    """The extension, started, its window open; the editor is in this process, runs are the test's."""

    def __init__(self, extension: Any, kit: Kit, jobs: Jobs, channels: list[LocalChannel]) -> None:
        self.extension, self.kit, self.jobs, self.channels = extension, kit, jobs, channels

    @property
    def channel(self) -> LocalChannel:
        return self.channels[-1]

    @property
    def text(self) -> str:
        """Of the task that is edited."""
        draft = self.channel.editor._draft
        return draft.text if draft else ""

    def look(self) -> None:
        self.kit.dispatch(UPDATE)

    def press(self, name: str) -> None:
        self.kit.press(name)
        self.look()

    def edit(self, kind: str, name: str, value: Any) -> None:
        self.kit.edit(kind, name, value)
        self.look()

    def choose(self, name: str, option: str) -> None:
        self.kit.choose(name, option)
        self.look()

    def said(self, label: str) -> str:
        return self.kit.find("Label", label).text
