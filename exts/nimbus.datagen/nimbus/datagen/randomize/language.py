"""Randomizer of language: wording of instructions, and names of objects in them."""

from __future__ import annotations

from typing import Annotated

from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.prepared.index import AssetEntry
from nimbus.datagen.plugin import AfterValidator, Field, PydanticCustomError, Ratio, Streams, register
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization
from nimbus.datagen.tasks.task_file import wording_fields

# The plain sentence is listed twice, so that it is twice as likely as any other.
FRAMES = (
    "{Instruction}.",
    "{Instruction}.",
    "Please {instruction}.",
    "Could you {instruction}?",
    "Now {instruction}.",
    "I want you to {instruction}.",
    "{Instruction}, please.",
)


def _holds_the_instruction(frame: str) -> str:
    instead = "write {instruction} for a lower-case start, {Instruction} for a capital"
    try:
        fields = wording_fields(frame)
    except ValueError:
        fields = []
    for field in fields:
        if field.name not in ("instruction", "Instruction") or not field.is_plain:
            context = {"frame": frame, "field": field.text, "instead": instead}
            raise PydanticCustomError("frame", "unknown field '{field}' in '{frame}'", context)
    if not fields:
        context = {"frame": frame, "instead": instead}
        raise PydanticCustomError("frame", "'{frame}' contains no instruction", context)
    return frame


@register("randomizer", "language")
class LanguageRandomization(LayoutRandomization):
    """Wording of the instruction: a sentence around it, and other names for objects."""

    part = "visual"
    frames: tuple[Annotated[str, AfterValidator(_holds_the_instruction)], ...] = Field(
        FRAMES, min_length=1, description="sentences around the instruction to choose from"
    )
    categories: Ratio = Field(
        0.5,
        ge=0,
        le=1,
        description="probability that an object is called by its category, or if imported, by a caption or synonym",
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a sentence, and for each object its name."""
        frame = str(streams("frame").choice(self.frames))
        draft.sentence = frame
        drawn: Draws = {"frame": frame}
        for item in draft.objects:
            if by_category := bool(streams(item.name).uniform() < self.categories):
                kind = open_library(item.library).kind(item.kind)
                draft.names[item.name] = kind.category
                if isinstance(kind, AssetEntry) and kind.caption:
                    names = (kind.category, kind.caption, *kind.synonyms)
                    draft.names[item.name] = str(streams(f"{item.name} words").choice(names))
            drawn[item.name] = {"by_category": by_category}
        return drawn
