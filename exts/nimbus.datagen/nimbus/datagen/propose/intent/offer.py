"""Offers: the kinds for one question to a model. Kinds named by the request come first, then kinds of all classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest

from nimbus.datagen.errors import InputError
from nimbus.datagen.propose.wording.lexicon import LANGUAGES, open_lexicon
from nimbus.datagen.propose.wording.names import KindLabel, category_without_color
from nimbus.datagen.random_streams import generator

OFFERED = 48
"""Number of kinds per question: enough for any task, few enough for small models, and varied between questions."""
_NAMED = 24
"""Largest number of kinds that the request names; the rest are possible containers, supports and neighbors."""


def offer_kinds(
    labels: Mapping[str, KindLabel], request: str, *, seed: int, index: int, count: int = OFFERED
) -> tuple[str, ...]:
    """Draw the kinds of one question.

    Args:
        labels: Labels of all kinds, by name.
        request: Request of the user; a kind comes first if the request contains its category, synonym or class.
        seed: Seed of the proposals.
        index: Number of the proposal; the kinds depend on it.
        count: Largest number of kinds.

    Raises:
        InputError: There are no kinds.
    """
    if not labels:
        raise InputError(
            "there are no kinds of objects", where="library", instead="name a library that contains kinds of objects"
        )
    rng = generator(seed, "offer", index)
    order = [sorted(labels)[at] for at in rng.permutation(len(labels))]
    words = f" {open_lexicon(LANGUAGES[0]).normalize(request)} "
    named = [kind for kind in order if _is_named(labels[kind], words)]
    # Kinds in a color that the request names come first: red_cube before blue_cube.
    named.sort(key=lambda kind: f" {labels[kind].color} " not in words)
    named = named[:_NAMED]
    others = _by_class([kind for kind in order if kind not in named], labels)
    return tuple(sorted(islice(chain(named, others), count)))


def _is_named(label: KindLabel, words: str) -> bool:
    nouns = open_lexicon(LANGUAGES[0]).nouns.get(category_without_color(label), ())
    names = {text for noun in nouns for text in (noun.singular, noun.plural, noun.head("en"))}
    names |= {category_without_color(label), label.object_class.replace("_", " ")}
    return any(re.search(rf"\s{re.escape(name.lower())}s?\s", words) for name in names)


def _by_class(kinds: Sequence[str], labels: Mapping[str, KindLabel]) -> Iterator[str]:
    """Yield kinds, alternating between classes."""
    classes: dict[str, list[str]] = {}
    for kind in kinds:
        classes.setdefault(labels[kind].object_class, []).append(kind)
    for turn in zip_longest(*classes.values()):
        yield from filter(None, turn)
