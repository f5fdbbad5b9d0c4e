"""Rewording of instruction steps by a language model; a sentence is accepted only if it makes the same claim."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from nimbus.datagen.language_model.client import LanguageModel
from nimbus.datagen.language_model.records import ModelQuestion
from nimbus.datagen.navigate.instruct.claims import Claim, StoredInstruction
from nimbus.datagen.navigate.instruct.grammar import MOST_WORDS, count_words

_SYSTEM = (
    "You reword instructions for a robot that walks through a building. You get numbered steps and write one "
    "sentence for each, in the same order, that says the same in natural English. Keep the names of rooms and things "
    "and the words left, right and around exactly as they are. Add no rooms, things, directions, distances or "
    "numbers. Each sentence ends with a point."
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"sentences": {"type": "array", "items": {"type": "string"}}},
    "required": ["sentences"],
    "additionalProperties": False,
}
_ACTIONS: Mapping[str, str] = {
    "turn": r"turn|turning|take|make|veer|bear|rotate|swing|face|spin|pivot|left|right",
    "enter": r"enter|entering|go|going|walk|walking|head|heading|move|moving|step|continue|proceed|into|through",
    "pass": r"pass|passing|past|keep|keeping|leave|by|alongside|along",
    "stop": r"stop|stopping|wait|halt|end|finish|arrive|reach|stand|pause",
}
"""Pattern by kind of claim; a sentence must contain one of the words for its kind."""
_TURN_WORDS = re.compile(r"\b(turn|turning|veer|rotate|swing|spin|pivot)\b")
_STOP_WORDS = re.compile(r"\b(stop|stopping|halt|wait)\b")
_SIDE_WORDS = re.compile(
    r"\b(left|right|around|back|behind|straight"
    r"|not|\w+n't|never|avoid|without|instead|ignore|skip|no|cannot|except|unless)\b"
)
"""Words that state a direction or may negate a claim; a sentence may contain only the claim's own side."""
_MOST_SENTENCE = 25
"""Largest number of words in a sentence."""


def reword(stored: StoredInstruction, model: LanguageModel, nouns: Collection[str]) -> tuple[StoredInstruction, str]:
    """Request other wording from a model, and use it if it is valid.

    Args:
        stored: Steps in the wording of the grammar.
        model: Model that rewords them.
        nouns: Nouns of all objects and rooms of the scene.

    Returns:
        Reworded steps and an empty text, or the unchanged steps and the reason for the refusal.

    Raises:
        InputError: The server cannot be used, or does not answer.
    """
    lines = "\n".join(f"{number + 1}. {step.text}." for number, step in enumerate(stored.steps))
    question = ModelQuestion(_SYSTEM, lines, _SCHEMA, name="sentences")
    answer = model.ask(question)
    if answer.fault:
        return stored, answer.fault
    sentences = answer.value.get("sentences")
    if not isinstance(sentences, list) or not all(isinstance(one, str) for one in sentences):
        return stored, "the reply contains no list of sentences"
    if len(sentences) != len(stored.steps):
        return stored, f"the reply has {len(sentences)} sentences for {len(stored.steps)} steps"
    words = [" ".join(str(one).split()) for one in sentences]
    for sentence, step in zip(words, stored.steps, strict=True):
        if problem := misfit(sentence, step.claim, nouns):
            return stored, problem
    if count_words(" ".join(words)) > MOST_WORDS:
        return stored, f"the reply has {count_words(' '.join(words))} words, more than {MOST_WORDS}"
    steps = tuple(replace(step, text=text) for step, text in zip(stored.steps, words, strict=True))
    kept = model.records.find(question, model.name)  # in a replay, only the record names the model
    return StoredInstruction(source=kept.model if kept else model.name, steps=steps), ""


def misfit(sentence: str, claim: Claim, nouns: Collection[str]) -> str:
    """Return the reason why a sentence does not make exactly the given claim; empty if it does.

    Args:
        sentence: Sentence from the model.
        claim: Claim that the sentence must make.
        nouns: Nouns of all objects and rooms of the scene; the sentence may contain only the claim's noun.
    """
    text = sentence.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if not sentence or not sentence.isprintable() or not sentence.endswith(".") or sentence.count(".") > 1:
        return f"'{sentence[:80]}' is not one sentence"
    if count_words(sentence) > _MOST_SENTENCE or re.search(r"\d", text):
        return f"'{sentence[:80]}' is too long or contains a digit"
    if claim.noun and not _holds(text, claim.noun):
        return f"'{sentence[:80]}' does not name the {claim.noun}"
    bare = re.sub(rf"\b{re.escape(claim.noun)}\b", " ", text) if claim.noun else text
    if other := next((noun for noun in sorted(nouns) if _holds(bare, noun) and not _holds(claim.noun, noun)), ""):
        return f"'{sentence[:80]}' also names the {other}"
    sides = _SIDE_WORDS.findall(bare)
    if sorted(set(sides)) != ([claim.side] if claim.side else []):
        return f"'{sentence[:80]}' contains {' and '.join(sides) or 'no side'}, not {claim.side or 'none'}"
    if not re.search(rf"\b({_ACTIONS[claim.kind]})\b", bare):
        return f"'{sentence[:80]}' contains no verb for '{claim.kind}'"
    if claim.kind != "turn" and _TURN_WORDS.search(bare) or claim.kind != "stop" and _STOP_WORDS.search(bare):
        return f"'{sentence[:80]}' asks for more than '{claim.kind}'"
    return ""


def _holds(text: str, noun: str) -> bool:
    return bool(re.search(rf"\b{re.escape(noun)}s?\b", text))
