"""Places in a robot's model file, for messages: the line of a link, a joint or a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from nimbus.datagen.errors import InputError
from nimbus.datagen.robots.urdf import Element

_MJCF_TAG = {"link": "body"}
_NAMES = ("name", "filename", "file")


@dataclass(frozen=True)
class ModelLines:
    """A URDF or MJCF file, as the user wrote it."""

    path: Path

    def error(self, element: Element, what: str, *, instead: str) -> InputError:
        """An error about a link, a joint or a mesh, ready to raise."""
        name = element.get("name") or element.get("filename") or ""
        line = self._line({element.tag, _MJCF_TAG.get(element.tag, element.tag)}, name)
        return InputError(what, where=f"{self.path}:{line}" if line else str(self.path), instead=instead)

    def _line(self, tags: set[str], name: str) -> int:
        """Where the first such element begins; 0 when it is nowhere, such as in an included file."""
        lines: list[int] = []
        parser = expat.ParserCreate()

        def note(tag: str, attributes: dict[str, str]) -> None:
            if tag in tags and name in map(attributes.get, _NAMES):
                lines.append(parser.CurrentLineNumber)

        parser.StartElementHandler = note
        parser.Parse(self.path.read_bytes(), True)
        return lines[0] if lines else 0
