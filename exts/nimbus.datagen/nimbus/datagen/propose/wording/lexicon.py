"""Words of a language from ``scenes/words``: nouns with their forms, and patterns of clauses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

from pydantic import Field

from nimbus.datagen.files.scene_files import scene_file
from nimbus.datagen.files.strict_yaml import StrictModel, load

LANGUAGES = ("english", "german", "spanish")
"""Languages of Nimbus; the first one has all styles of wordings."""
_MARKS = re.compile(r"[.,;:!?¿¡\"„“”()]+")
_BEHIND = (" of ", " with ", " to ")
"""Words before which the head noun of an English name ends, as in ``box with a lid``."""
_SIBILANT = ("s", "x", "z", "ch", "sh")

Words = tuple[str, ...]


class LexiconFile(StrictModel):
    """File with the words of a language."""

    language: Literal["en", "de", "es"]
    articles: Words
    colors: dict[str, str] = Field(description="color words, by the name of the color in kinds")
    numbers: Words = Field(description="number words, from one")
    both: str = Field(description="word that replaces the article and 'two'; may be empty")
    sides: dict[str, str] = Field(description="words added to a noun, by the starting place")
    nouns: dict[str, Words] = Field(description="names by category: 'gender name, plural'")
    classes: dict[str, Words] = Field({}, description="classes of kinds that a general name covers, by that name")
    purposes: dict[str, Words] = Field(
        {}, description="categories of kinds that share a purpose, by the name of the purpose"
    )
    places: dict[str, Words]
    spots: dict[str, Words] = Field(
        {}, description="other words for the places where a thing ends, by place; read and never written"
    )
    clauses: dict[str, Words]
    read: dict[str, Words] = Field(
        {},
        description="further patterns, read and never written; one that begins with {object} omits the verb before it",
    )
    means: Words
    joined: Words = Field(alias="and")
    first: Words
    next: Words
    last: Words
    polite: Words
    fillers: Words


@dataclass(frozen=True)
class Noun:
    """Noun with its gender (empty in English), singular and plural."""

    gender: str
    singular: str
    plural: str

    @classmethod
    def parse(cls, text: str, language: str) -> Noun:
        """Parse an entry such as ``knife, knives`` or ``m Becher, Becher``."""
        singular, _, plural = text.partition(", ")
        gender = ""
        if language != "en":
            gender, _, singular = singular.partition(" ")
        return cls(gender, singular, plural or _english_plural(singular))

    def head(self, language: str) -> str:
        """Return the head noun, such as ``cup`` for ``plastic cup`` and ``board`` for ``hole board with a lid``."""
        if language == "de":
            return self.singular
        first = min((self.singular.partition(word)[0] for word in _BEHIND), key=len)
        return first.split(" ")[0 if language == "es" else -1]

    def phrase(self, words: LexiconFile, *, color: str = "", side: str = "", count: int = 1) -> str:
        """Return the noun with a definite article, in the grammatical case of the language's patterns.

        Args:
            words: Words of the language.
            color: Color word of the language.
            side: Side word of the language.
            count: Number of things; above one, a number word follows or replaces the article.
        """
        name = self.plural if count > 1 else self.singular
        many = words.numbers[count - 1] if count > 1 else ""
        is_both = count == 2 and bool(words.both)
        if words.language == "en":
            return _joined(words.both if is_both else _joined("the", many), side, color, name)
        if words.language == "de":
            article = "die" if count > 1 else {"m": "den", "f": "die", "n": "das"}[self.gender]
            ending = "en" if count > 1 or self.gender == "m" else "e"
            ends = [adjective + ending for adjective in (side, color) if adjective]
            return _joined(words.both if is_both else _joined(article, many), *ends, name)
        article = {"m": ("el", "los"), "f": ("la", "las")}[self.gender][count > 1]
        return _joined(article, many, name, _spanish(color, self.gender, count > 1), side)


def _spanish(color: str, gender: str, is_plural: bool) -> str:
    """Inflect a color that follows a Spanish noun."""
    if color.endswith("o"):
        color = color[:-1] + ("a" if gender == "f" else "o")
    if not is_plural or not color:
        return color
    return color.replace("marrón", "marron") + ("s" if color[-1] in "aeo" else "es")


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _english_plural(name: str) -> str:
    """Return the regular plural; in ``ear of corn`` or ``box with a lid``, the first noun gets the ending."""
    for word in _BEHIND:
        head, found, rest = name.partition(word)
        if found:
            return _english_plural(head) + found + rest
    if name.endswith(_SIBILANT):
        return name + "es"
    return name[:-1] + "ies" if name.endswith("y") and name[-2] not in "aeou" else name + "s"


class Lexicon:
    """Words of one language, with all alternatives of its patterns."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.words = load(scene_file("words", name, kind="language"), LexiconFile)
        nouns, language = self.words.nouns, self.words.language
        self.nouns = {name: tuple(Noun.parse(text, language) for text in texts) for name, texts in nouns.items()}
        self.clauses = {relation: _expanded(texts) for relation, texts in self.words.clauses.items()}
        self.means = _expanded(self.words.means)

    def normalize(self, text: str) -> str:
        """Return a text in lower case, with single spaces, without punctuation and without Spanish contractions."""
        text = " ".join(_MARKS.sub(" ", text.lower()).split())
        if self.words.language == "es":
            text = re.sub(r"\bdel\b", "de el", re.sub(r"\bal\b", "a el", text))
        return text

    def contract(self, text: str) -> str:
        """Apply the contractions of the language to a text."""
        if self.words.language == "es":
            return re.sub(r"\bde el\b", "del", re.sub(r"\ba el\b", "al", text))
        return text


def _expanded(texts: Words) -> Words:
    """Expand patterns into all their alternatives.

    A pattern such as ``put/set {object} on/on_top_of {target}`` separates alternatives by / and writes _ for a space.
    """
    found: dict[str, None] = {}
    for text in texts:
        for choice in product(*(part.split("/") for part in text.split(" "))):
            found[" ".join(choice).replace("_", " ")] = None
    return tuple(found)


@cache
def open_lexicon(name: str) -> Lexicon:
    """Open the words of a language, once.

    Raises:
        InputError: The language is unknown, or its file has an error.
    """
    return Lexicon(name)
