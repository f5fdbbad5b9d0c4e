"""Error replies of servers: conversion to one-line errors, and the delay before a retry."""

from __future__ import annotations

import email.utils
import re
import time

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import parse_json, to_json
from nimbus.datagen.language_model.exchange import KEY, Address, HttpReply

_REMEDIES = {
    401: f"set {KEY} in the environment",
    403: f"set {KEY} to a key with access to this model",
    404: "check the address, which usually ends in /v1, and --model-name",
}
_LATER = "run the command again after that time; recorded replies are reused"


def refusal(sent: HttpReply, address: Address) -> InputError:
    """Return a one-line error for a reply after which a retry is useless."""
    text = address.hide_key(" ".join(_message(sent.text).split()))[:200]
    instead = _REMEDIES.get(sent.status, "look at the log of the server")
    if 300 <= sent.status < 400:
        instead = f"give the address of the redirect: {address.hide_key(sent.headers.get('location', 'none'))[:200]}"
    return InputError(f"status {sent.status}{f': {text}' if text else ''}", where=address.url, instead=instead)


def _message(text: str) -> str:
    """Return the error message of a JSON reply; for another reply, the beginning of its text without HTML tags."""
    try:
        data = parse_json(text)
    except ValueError:
        return re.sub(r"<[^<>]{0,200}>", " ", text[:2000])
    error = data.get("error", data) if isinstance(data, dict) else data
    message = error.get("message", error) if isinstance(error, dict) else error
    return message if isinstance(message, str) else to_json(message)


def pause_before_retry(sent: HttpReply, pause: float, address: Address, *, longest: float) -> float:
    """Return the time to wait before a retry [s].

    Args:
        sent: Reply of the server, with an error status.
        pause: Wait if the server requests none [s].
        address: Address of the server, for errors.
        longest: Longest acceptable wait [s].

    Raises:
        InputError: A retry is useless, or the server requests a longer wait than ``longest``.
    """
    if sent.status != 429 and sent.status < 500:
        raise refusal(sent, address)
    wanted = _retry_after(sent.headers.get("retry-after", "").strip())
    if wanted is not None and wanted > longest:
        what = f"status {sent.status}: the server requests a wait of {wanted:.0f} s"
        raise InputError(what, where=address.url, instead=_LATER)
    return pause if wanted is None else wanted


def _retry_after(text: str) -> float | None:
    """Return the delay in a ``Retry-After`` header, a number of seconds or a date [s]; None for other content."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
