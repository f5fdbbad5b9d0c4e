"""Client of a language model that answers with JSON objects.

The client omits parameters that a server refuses, repeats failed requests, and records every reply.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.codec import parse_json, to_json
from nimbus.datagen.language_model.exchange import Address, HttpReply, NoReply, exchange
from nimbus.datagen.language_model.records import ModelQuestion, RecordFolder, Reply
from nimbus.datagen.language_model.refusal import pause_before_retry, refusal
from nimbus.datagen.language_model.reply import Answer, read_message

_FORMATS = ("json_schema", "json_object", "text")
"""Values of ``response_format``, strictest first; in every format, the prompt contains the schema as well."""
_OPTIONAL = ("max_tokens", "max_completion_tokens", "temperature")
"""Request parameters that some servers refuse."""
_TEMPERATURE = 0.7
_LETTERS_A_TOKEN = 3
"""Assumed number of characters per token for servers that report no usage; a low value, so that the estimate is
high."""
_LIST_SECONDS = 20.0
"""Time limit for the list of a server's models [s]."""
_KEPT = "recorded replies are reused"


class BudgetSpent(InputError):
    """Raised when the token budget of a command is spent."""

    exit_code = 1


class ModelUnavailable(InputError):
    """Raised when a server gave no readable answer in any of the allowed tries."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on requests, and on the tokens of a command."""

    tries: int = 8
    """Largest number of requests per question; requests with changed parameters count too. After a question without an
    answer, each further one is sent once until the server answers."""
    seconds: float = 180.0
    """Time limit of one request [s]; a reasoning model on a slow machine takes a minute or two."""
    first_wait: float = 1.0
    """Wait after the first failure [s]; each further failure doubles it."""
    longest_wait: float = 60.0
    """Upper limit of the wait [s]; if a server requests a longer one, the question fails."""
    reply_tokens: int = 4096
    """Length limit of a reply [tokens]; doubled once if a reply is cut off."""
    budget: int = 1_000_000
    """Largest total number of tokens in requests and replies."""


@dataclass
class LanguageModel:
    """Language model behind an OpenAI-compatible API, or its recorded replies."""

    records: RecordFolder
    """Recorded questions and replies; a recorded question is answered without a request."""
    address: Address | None = None
    """Address of the server; None to use recorded replies only."""
    name: str = ""
    """Name of the model; empty for the only model of the server."""
    limits: Limits = field(default_factory=Limits)
    spent: int = field(default=0, init=False)
    """Number of tokens used so far."""
    _format: int = field(default=0, init=False)
    _dropped: set[str] = field(default_factory=set, init=False)
    _is_silent: bool = field(default=False, init=False)
    """True if the last question got no answer."""

    def find_name(self) -> None:
        """Ask the server for its only model if no name is given.

        Raises:
            InputError: The server cannot be used, has several models, or does not list them.
        """
        if self.address is not None and not self.name:
            self.name = _only_model(self.address, self.limits)

    def ask(self, question: ModelQuestion) -> Answer:
        """Return the answer to a question, from the records or from the server.

        Returns:
            The object in the reply, or the reason why the reply contains none. The object may violate the schema, even
            if the server claims to enforce it.

        Raises:
            InputError: The server cannot be used, did not answer after all tries, or there is neither a server nor a
                recorded reply.
            BudgetSpent: The token budget is spent.
        """
        self.find_name()
        reply = self.records.find(question, self.name)
        if reply is None:
            if self.address is None:
                raise InputError("no model is given", instead="give --model URL or --replay FOLDER")
            # The tries of a question take minutes; a dataset of many episodes must not wait that long for each of them.
            tries = 1 if self._is_silent else self.limits.tries
            self._is_silent = True
            reply = self._fetch(question, self.address, tries)
            self._is_silent = False
            self.records.keep(question, reply)
        return _read(reply, question)

    def _fetch(self, question: ModelQuestion, address: Address, tries: int) -> Reply:
        """Send requests until a reply can be parsed.

        If no reply can be parsed, the last one is returned after the last try.

        Raises:
            InputError: There was no reply at all.
            BudgetSpent: The token budget is spent.
        """
        limit, pause, why, unread, lower = self.limits.reply_tokens, self.limits.first_wait, "", None, 0
        for number in range(tries):
            payload = self._payload(question, limit, lower)
            try:
                sent = exchange(address, "/chat/completions", payload, seconds=self.limits.seconds)
            except NoReply as error:
                self._count(None, to_json(payload))
                why, wait = str(error), pause
            else:
                if sent.status in (400, 422):
                    why = self._adapt(sent, payload, address)
                    continue
                if sent.status != 200:
                    why = f"status {sent.status}"
                    wait = pause_before_retry(sent, pause, address, longest=self.limits.longest_wait)
                elif (reply := self._reply(sent, payload, address)) is None:
                    why, wait = "the reply is not a chat completion", pause
                elif reply.finish == "length" and limit == self.limits.reply_tokens:
                    unread, limit = reply, 2 * limit
                    continue
                elif _read(reply, question).fault and not _is_final(reply) and self._format + lower < len(_FORMATS) - 1:
                    unread, lower = reply, lower + 1  # some servers accept a schema but ignore it
                    continue
                else:
                    return reply
            if number + 1 < tries:
                time.sleep(wait)
            pause = min(2 * pause, self.limits.longest_wait)
        if unread is not None:
            return unread
        instead = f"start the server, or try again; {_KEPT}"
        raise ModelUnavailable(f"no answer after {tries} tries: {why}", where=address.url, instead=instead)

    def _payload(self, question: ModelQuestion, limit: int, lower: int) -> dict[str, Any]:
        """Return the body of a request.

        Args:
            question: Question to ask.
            limit: Length limit of the reply [tokens].
            lower: Number of steps from the strictest format that the server accepts to a less strict one.

        Raises:
            BudgetSpent: The token budget is spent.
        """
        left = self.limits.budget - self.spent
        if left <= 0:
            what = f"the budget of {self.limits.budget} tokens is spent"
            raise BudgetSpent(what, where="--budget", instead=f"raise it; {_KEPT}")
        form = _FORMATS[self._format + lower]
        schema = {"name": question.name, "strict": True, "schema": question.schema}
        strict = {"type": form} | ({"json_schema": schema} if form == "json_schema" else {})
        system = f"{question.system}\n\nReply with one JSON object of this JSON Schema:\n{to_json(question.schema)}"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question.request}]
        amount = next((name for name in _OPTIONAL[:2] if name not in self._dropped), "")
        optional = {amount: min(limit, left)} if amount else {}
        optional |= {} if "temperature" in self._dropped else {"temperature": _TEMPERATURE}
        optional |= {} if form == "text" else {"response_format": strict}
        return {"model": self.name, "messages": messages, "stream": False} | optional

    def _adapt(self, sent: HttpReply, payload: Mapping[str, Any], address: Address) -> str:
        """Drop the parameter that a server refused, or take a less strict format; return the reason.

        Raises:
            InputError: The refusal has another cause.
        """
        said = sent.text[:4000]
        # An error that contains this name states the replacement of the refused parameter.
        said += " max_tokens" if "max_completion_tokens" in said else ""
        if named := [name for name in _OPTIONAL if name in payload and name in said]:
            self._dropped.add(named[0])
        elif self._format < len(_FORMATS) - 1 and "response_format" in payload:
            self._format += 1
        else:
            raise refusal(sent, address)
        return f"status {sent.status}"

    def _reply(self, sent: HttpReply, payload: Mapping[str, Any], address: Address) -> Reply | None:
        """Return the message in a chat completion, and count its tokens; None if the reply is something else."""
        try:
            data = parse_json(address.hide_key(sent.text))
        except ValueError:
            data = None
        body = data if isinstance(data, dict) else {}
        tokens = self._count(body.get("usage"), to_json(payload) + sent.text)
        choices = body.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(first, dict) or not isinstance(message, dict):
            return None
        kept = {key: message[key] for key in _MESSAGE if message.get(key) is not None}
        kept = parse_json(to_json(kept).encode(errors="replace").decode())  # replaces unpaired surrogates
        return Reply(kept, str(first.get("finish_reason"))[:40], self.name, tokens)

    def _count(self, usage: object, text: str) -> int:
        """Add the tokens of a request and its reply to the sum; return them.

        Args:
            usage: Field ``usage`` of the reply.
            text: Request and reply, from whose length the tokens are estimated if ``usage`` has no number.
        """
        counted = usage.get("total_tokens") if isinstance(usage, dict) else None
        tokens = counted if type(counted) is int and 0 < counted < 2**31 else len(text) // _LETTERS_A_TOKEN
        self.spent += tokens
        return tokens


_MESSAGE = ("content", "reasoning_content", "reasoning", "refusal")
"""Fields of a message that are read and recorded; others are dropped."""


def _read(reply: Reply, question: ModelQuestion) -> Answer:
    return read_message(reply.message, reply.finish, keys=question.schema.get("properties", {}))


def _is_final(reply: Reply) -> bool:
    """Return True if a request in another format would not give a better reply."""
    return bool(reply.message.get("refusal")) or reply.finish in ("length", "content_filter")


def _only_model(address: Address, limits: Limits) -> str:
    """Return the name of the server's only model.

    Raises:
        InputError: The server has several models, or does not list them.
    """
    try:
        sent = exchange(address, "/models", seconds=min(limits.seconds, _LIST_SECONDS))
    except NoReply as error:
        raise InputError(str(error), where=address.url, instead="start the server, or check the address") from None
    if sent.status in (401, 403):
        raise refusal(sent, address)
    try:
        data = parse_json(sent.text) if sent.status == 200 else {}
    except ValueError:
        data = {}
    entries = data.get("data") if isinstance(data, dict) else None
    names = [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    names = [name for name in names if isinstance(name, str) and name]
    if len(names) != 1:
        what = f"the server has {len(names)} models" if names else "the server does not list its models"
        known = ", ".join(map(quote_words, names[:5]))
        instead = f"give --model-name: {known}" if known else "give --model-name"
        raise InputError(what, where=address.url, instead=instead)
    return names[0]
