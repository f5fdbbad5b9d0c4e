"""Extraction of the JSON object from a model's text, which may also contain reasoning, prose and code fences."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_STARTS = 64
"""Largest number of opening braces that are tried as the start of the object; prose may contain some before it."""
_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_BEGUN = re.compile(r'\{\s*"')
_THOUGHTS = re.compile(r"<(/?)(think|thinking|reasoning)>")


@dataclass(frozen=True)
class Answer:
    """Parsed reply: an object, or the reason why there is none."""

    value: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    """Reason in one line; empty if there is an object."""


def read_message(message: Mapping[str, Any], finish: object, *, keys: Collection[str]) -> Answer:
    """Return the object in a message of a model, or the reason why there is none.

    Args:
        message: Field ``choices[0].message`` of a reply.
        finish: Field ``finish_reason`` of the reply.
        keys: Keys of the requested object.
    """
    text = _text(message.get("content"))
    text = text if text.strip() else _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    if refusal := _text(message.get("refusal")):
        return Answer(fault=f"the model refused: {refusal[:200]}")
    if finish == "length":
        return Answer(fault="the reply was cut off at its token limit")
    if finish == "content_filter":
        return Answer(fault="the reply was withheld by a content filter")
    return read_object(text, keys=keys)


def _text(content: object) -> str:
    """Return the text of a field, which is a string or a list of parts; empty for other content."""
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def read_object(text: str, *, keys: Collection[str]) -> Answer:
    """Find the only JSON object in a text.

    An object whose only key is not in ``keys`` is a wrapper; its value is returned.
    """
    text = _without_thoughts(text)
    if not text.strip():
        return Answer(fault="the reply is empty")
    fenced = (_first(match[1]) for match in _FENCE.finditer(text))
    found, end, fault = next((one for one in fenced if one[0] is not None), None) or _first(text)
    if found is None:
        return Answer(fault=fault)
    if _first(end)[0] is not None:
        return Answer(fault="the reply contains two JSON objects")
    if len(found) == 1 and not set(found) & set(keys):
        (inner,) = found.values()
        found = inner if isinstance(inner, dict) else found
    return Answer(found)


def _without_thoughts(text: str) -> str:
    """Remove reasoning: text between a start tag and its end tag, and text before an end tag without a start tag.

    One pass over the tags suffices. A regular expression for pairs would take hours for a reply of 4 MB, because it
    searches the whole rest of the reply for the end of each start tag.
    """
    kept: list[str] = []
    begin, name = 0, ""
    last = {match[2]: match.end() for match in _THOUGHTS.finditer(text) if match[1]}
    for match in _THOUGHTS.finditer(text):
        if name:
            if match[1] and match[2] == name:
                begin, name = match.end(), ""
        elif match[1]:
            kept.clear()
            begin = match.end()
        elif last.get(match[2], 0) > match.end():  # an unfinished start tag does not hide an object after it
            kept.append(text[begin : match.start()])
            name = match[2]
    return "".join(kept) + text[begin:]


def _first(text: str) -> tuple[dict[str, Any] | None, str, str]:
    """Return the first JSON object in a text, the text after it, and the fault if there is none."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_object, parse_constant=_refuse)
    begin, fault = -1, "the reply contains no JSON object"
    for _ in range(_STARTS):
        begin = text.find("{", begin + 1)
        if begin < 0:
            break
        try:
            value, end = decoder.raw_decode(text, begin)
            json.dumps(value, ensure_ascii=False).encode()
        except RecursionError:
            return None, "", "the JSON of the reply is nested too deeply"
        except UnicodeEncodeError:
            return None, "", "the JSON of the reply contains half a surrogate pair"
        except ValueError as error:
            fault = f"the reply contains no complete JSON object: {error}"
            if _BEGUN.match(text, begin):  # an incomplete object; those nested in it are not the answer
                break
            continue
        return value, text[end:], ""
    return None, "", fault


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
