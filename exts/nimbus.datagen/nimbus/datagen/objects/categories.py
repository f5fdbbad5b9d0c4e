"""Categories of everyday objects with their sizes and masses: ``scenes/categories.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.files.strict_yaml import Name, StrictModel, parse

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
Measure = Annotated[float, Field(gt=0)]


class Category(StrictModel):
    """Category of objects."""

    object_class: Name = Field(alias="class")
    long: tuple[Measure, Measure] = Field(description="longest side [cm]")
    mass: tuple[Measure, Measure] = Field(description="[g]")
    words: tuple[Name, ...] = ()


@cache
def categories() -> dict[str, Category]:
    """Read the categories, by name."""
    path = scene_folder("objects").parent / "categories.yaml"
    document = parse(path.read_text(encoding="utf-8"), str(path))
    return {name: document.validate(Category, data=document.data[name], at=(name,)) for name in document.data}


def find_category(names: Iterable[str]) -> tuple[str, Category, str] | None:
    """Find the category that names mention; the longest run of words wins, and among equally long runs the last one.

    Args:
        names: Names of files and folders, such as ``003_cracker_box`` or ``AlphabetSoup``; the most likely first.

    Returns:
        Name of the category, the category, and the matching words; None without a match.
    """
    known = _words()
    for name in names:
        for words in _runs(split_words(name)):
            if found := known.get(words) or known.get(words.removesuffix("s")) or known.get(words.removesuffix("es")):
                return found, categories()[found], words.replace("_", " ")
    return None


def split_words(name: str) -> list[str]:
    """Split a name into lower-case words, without numbers."""
    return [word.lower() for word in _WORD.findall(name)]


def _runs(words: list[str]) -> Iterator[str]:
    for length in range(min(len(words), 4), 0, -1):
        for start in range(len(words) - length, -1, -1):
            yield "_".join(words[start : start + length])


@cache
def _words() -> dict[str, str]:
    """Map every word to its category."""
    listed = {word: name for name, category in categories().items() for word in category.words}
    return listed | {name: name for name in categories()}
