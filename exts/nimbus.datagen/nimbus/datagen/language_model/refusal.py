"""Error replies of servers: status and text in one line, and the requested delay."""

from __future__ import annotations

import email.utils
import re
import time

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import parse_json, to_json
from nimbus.datagen.language_model.exchange import KEY, Address, HttpReply

_REMEDIES = {
    401: f"set {KEY} in the environment",
    403: f"set {KEY} to a key that may use this model",
    404: "check the address, which mostly ends in /v1, and --model-name",
}
_LATER = "run again then: kept replies are not asked for again"


def refusal(sent: HttpReply, address: Address) -> InputError:
    """Return a one-line error for a reply that makes another try useless."""
    text = address.hide_key(" ".join(_message(sent.text).split()))[:200]
    instead = _REMEDIES.get(sent.status, "see the server's own log")
    if 300 <= sent.status < 400:
        instead = f"give the address that it names: {address.hide_key(sent.headers.get('location', 'none'))[:200]}"
    return InputError(f"status {sent.status}{f': {text}' if text else ''}", where=address.url, instead=instead)


def _message(text: str) -> str:
    """Return the text of an error in the servers' usual form; of any other, its beginning without tags."""
    try:
        data = parse_json(text)
    except ValueError:
        return re.sub(r"<[^<>]{0,200}>", " ", text[:2000])
    error = data.get("error", data) if isinstance(data, dict) else data
    message = error.get("message", error) if isinstance(error, dict) else error
    return message if isinstance(message, str) else to_json(message)


def pause_before_retry(sent: HttpReply, pause: float, address: Address, *, longest: float) -> float:
    """Return the time to wait [s]: as requested by the server, else the given one.

    Raises:
        InputError: Another try is useless, or the server requests more than the longest wait.
    """
    if sent.status != 429 and sent.status < 500:
        raise refusal(sent, address)
    wanted = _retry_after(sent.headers.get("retry-after", "").strip())
    if wanted is not None and wanted > longest:
        what = f"status {sent.status}: the server asks to wait for {wanted:.0f} s"
        raise InputError(what, where=address.url, instead=_LATER)
    return pause if wanted is None else wanted


def _retry_after(text: str) -> float | None:
    """Return the seconds in the header, which holds a number or a date; None for other content."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
