"""Captions and synonyms of a library's kinds, from measurements or from a language model whose answers are checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from nimbus.datagen.assets.color_names import COLORS
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.folder_lock import lock_folder
from nimbus.datagen.files.own_files import refuse_links
from nimbus.datagen.language_model.client import BudgetSpent, LanguageModel
from nimbus.datagen.language_model.records import ModelQuestion
from nimbus.datagen.language_model.reply import Answer
from nimbus.datagen.objects.categories import find_category, split_words
from nimbus.datagen.objects.prepared.index import INDEX_NAME, AssetEntry, index_text, read_index

_LETTERS, _WORDS, _SYNONYMS = 80, 9, 4
"""Limits of a caption [characters, words], and largest number of synonyms."""
_PLAIN = re.compile(r"[a-z][a-z' -]*")
_FLAT, _LONG = 0.35, 2.2
"""Ratio of the shortest to the middle side below which an object is flat, and of the longest to the middle side
above which it is long.
"""
_SIZES = {"tiny": (0.0, 0.05), "small": (0.0, 0.12), "little": (0.0, 0.12), "big": (0.12, 9.0), "large": (0.12, 9.0)}
_SIZES |= {"huge": (0.25, 9.0), "giant": (0.25, 9.0)}
"""Range of the longest side for which a size word is true [m]."""
_SHAPES = {"flat": "flat", "thin": "flat", "long": "long", "slender": "long", "elongated": "long"}
_COLORS = {name: name for name in COLORS} | {"grey": "gray", "violet": "purple", "golden": "yellow", "beige": "brown"}
_PARTS = ("handle", "lid", "cap", "label", "knob", "button", "base", "top")
"""Words that name a part of an object instead of a category."""
_SYSTEM = """You name things for instructions to a robot. Fill in the form for one thing.
caption: a noun phrase of 2 to 8 words in lower case, without an article and without numbers, such as "red soup can with
a white label". It ends in or holds the category. It names no color, size or material that is not stated.
synonyms: up to four other common names of this category of thing, in lower case; none if you know no good one."""
_SCHEMA = {
    "type": "object",
    "properties": {"caption": {"type": "string"}, "synonyms": {"type": "array", "items": {"type": "string"}}},
    "required": ["caption", "synonyms"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """Caption and synonyms of one kind."""

    kind: str
    caption: str
    synonyms: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    """One line for each rejected answer of the language model."""


def annotate_library(
    folder: Path, model: LanguageModel | None, *, report: Callable[[Annotation, int, int], None]
) -> tuple[list[Annotation], str]:
    """Write captions and synonyms into the index of a library; a model's earlier answers are reused.

    Args:
        folder: Folder of the library.
        model: Language model; without one, captions are composed from category, shape and color.
        report: Called with each annotation, its number and the number of kinds.

    Returns:
        Annotations, and the reason if some are missing.

    Raises:
        InputError: The folder is not a library, or has links, or the model cannot be queried; earlier answers are kept.
    """
    if not (folder / INDEX_NAME).is_file():
        raise InputError(
            f"contains no {INDEX_NAME}", where=str(folder), instead="give a library that 'nimbus assets import' wrote"
        )
    refuse_links(folder.resolve())
    lock = lock_folder(folder)
    made: dict[str, Annotation] = {}
    stopped = ""
    try:
        index = read_index(folder)[0]
        entries = [entry for entry in index.kinds if not entry.refused]
        try:
            for number, entry in enumerate(entries, 1):
                made[entry.kind] = describe(entry) if model is None else _ask(entry, model)
                report(made[entry.kind], number, len(entries))
        except BudgetSpent as error:
            stopped = str(error)
        finally:
            kinds = tuple(_with(entry, made.get(entry.kind)) for entry in index.kinds)
            write_atomic(folder / INDEX_NAME, index_text(replace(index, kinds=kinds)), durable=True, shared=False)
    finally:
        lock.release()
    return list(made.values()), stopped


def _with(entry: AssetEntry, words: Annotation | None) -> AssetEntry:
    return entry if words is None else replace(entry, caption=words.caption, synonyms=words.synonyms)


def describe(entry: AssetEntry) -> Annotation:
    """Compose a caption from category, shape and color; the synonym is the category's more general name."""
    known = find_category((entry.category,))
    noun = entry.category if known else "thing"
    words = [shape] if (shape := shape_of(entry)) and not known else []
    words += [" and ".join(entry.color_names)] if entry.color_names else []
    wider = known[0].replace("_", " ") if known else ""
    synonyms = (wider,) if wider != noun and noun.endswith(wider) and wider else ()
    return Annotation(kind=entry.kind, caption=" ".join([*words, noun]), synonyms=synonyms)


def shape_of(entry: AssetEntry) -> str:
    """Return ``flat`` or ``long`` if the sides show it clearly, or an empty string."""
    low, middle, high = sorted(entry.size)
    if low < _FLAT * middle:
        return "flat"
    return "long" if high > _LONG * middle else ""


def _ask(entry: AssetEntry, model: LanguageModel) -> Annotation:
    answer = model.ask(_question(entry))
    return check_words(entry, answer)


def _question(entry: AssetEntry) -> ModelQuestion:
    """Compose the question about a kind, only from its measurements and its category."""
    sides = " x ".join(f"{100 * side:.3g}" for side in entry.size)
    noun = describe(entry).caption.split(" ")[-1] if not find_category((entry.category,)) else entry.category
    lines = (f"category: {noun}", f"size: {sides} cm", f"colors: {', '.join(entry.color_names) or 'not known'}")
    shape = shape_of(entry)
    return ModelQuestion(_SYSTEM, "\n".join([*lines, f"shape: {shape}"] if shape else lines), _SCHEMA, "words")


def check_words(entry: AssetEntry, answer: Answer) -> Annotation:
    """Keep a model's words that agree with the measurements; replace a wrong caption with the composed one."""
    own = describe(entry)
    if answer.fault:
        return replace(own, dropped=(answer.fault,))
    caption, listed = answer.value.get("caption"), answer.value.get("synonyms")
    dropped = []
    if why := _fault(entry, caption):
        dropped.append(f"caption {_short(caption)}: {why}")
        caption = own.caption
    kept = list(own.synonyms)
    for word in listed if isinstance(listed, list) else []:
        if why := _synonym_fault(entry, word):
            dropped.append(f"synonym {_short(word)}: {why}")
        elif word not in kept and word != entry.category and len(kept) < _SYNONYMS:
            kept.append(word)
    return Annotation(kind=entry.kind, caption=str(caption), synonyms=tuple(kept), dropped=tuple(dropped))


def _fault(entry: AssetEntry, text: object) -> str:
    """Return the reason why a noun phrase does not fit a kind; empty if it fits."""
    if not isinstance(text, str) or not _PLAIN.fullmatch(text) or len(text) > _LETTERS:
        return f"not plain words of at most {_LETTERS} letters"
    words = re.split(r"[ -]+", text.strip())
    if len(words) > _WORDS or words[0] in ("a", "an", "the"):
        return f"more than {_WORDS} words, or an article"
    for word in words:
        if word in _COLORS and _COLORS[word] not in entry.color_names:
            return f"it is {' and '.join(entry.color_names) or 'of no measured color'}, not {word}"
        low, high = _SIZES.get(word, (0.0, 9.0))
        if not low <= max(entry.size) <= high:
            return f"it is {100 * max(entry.size):.3g} cm long, not {word}"
        if word in _SHAPES and _SHAPES[word] != shape_of(entry):
            return f"its sides do not make it {word}"
    return _category_fault(entry, words)


def _category_fault(entry: AssetEntry, words: list[str]) -> str:
    """Return the reason why words do not name the kind's category, or also name another one; empty if they fit.

    Another category is allowed if the kind's own name contains it.
    """
    known = find_category((entry.category,))
    own = split_words(entry.category.replace(" ", "_")) if known else ["thing"]
    if not any(words[at : at + len(own)] == own for at in range(len(words))):
        return f"the category is missing: '{' '.join(own)}'"
    named = {*own, *split_words(entry.kind), *_PARTS}
    for word in words:
        other = find_category((word,))
        if other and word not in named and (known is None or other[0] != known[0]):
            return f"'{word}' names another category"
    return ""


def _synonym_fault(entry: AssetEntry, text: object) -> str:
    """Return the reason why a synonym is refused; empty for a known name of the same category.

    The model's answer alone is not sufficient.
    """
    if not isinstance(text, str) or not _PLAIN.fullmatch(text) or len(text) > _LETTERS // 2:
        return "not plain words"
    known, found = find_category((entry.category,)), find_category((text.replace(" ", "_"),))
    if known is None:
        return "its category is not known"
    if any(word in _COLORS or word in _SIZES for word in text.split()):
        return "a synonym must not contain a color or size"
    if found is None or found[0] != known[0]:
        return f"not known as a name of a {known[0].replace('_', ' ')}"
    return ""


def _short(value: object) -> str:
    return repr(value)[:60]
