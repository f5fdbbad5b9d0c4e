"""The extension in a stand-in for Kit made from the contract, with its window open for tests."""

from __future__ import annotations

from typing import Any

from tests.support.desks import LocalChannel, StubLauncher
from tools.contract.kit_behaviour import Kit

MENU = "Tools/Replicator/Nimbus"
UPDATE = "omni.kit.app:GLOBAL_EVENT_UPDATE"


class Started:
    """The started extension with its window open; the editor is in this process, and the test simulates runs."""

    def __init__(self, extension: Any, kit: Kit, jobs: StubLauncher, channels: list[LocalChannel]) -> None:
        self.extension, self.kit, self.jobs, self.channels = extension, kit, jobs, channels

    @property
    def channel(self) -> LocalChannel:
        return self.channels[-1]

    @property
    def text(self) -> str:
        """Return the text of the edited task."""
        draft = self.channel.editor.draft
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

    def label(self, name: str) -> str:
        """Return the text of a label."""
        return self.kit.find("Label", name).text

    def field(self, name: str) -> str:
        """Return the text of a field."""
        return self.kit.find("StringField", name).model.get_value_as_string()
