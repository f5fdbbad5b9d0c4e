"""Encrypted messages between nodes that share a token.

The token itself is never sent: when a node has ended, another user can listen on its port. That process can read no
request, and no answer that it relays from another node, and can make no block that a reader accepts.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from functools import cache

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.installation import add_extra

_NONCE_BYTES = 12
"""Size of the random number before each message, as AES-GCM takes it [bytes]."""
SEALED_BYTES = _NONCE_BYTES + 16
"""Number of bytes that sealing adds: the random number and AES-GCM's tag."""


class ForeignMessageError(Exception):
    """Raised for a message that was sealed with another token, for another context, or not at all."""


class MessageSeal:
    """AES-256-GCM with a key that is derived from a token.

    Args:
        token: Token of the nodes; it must not be guessable.

    Raises:
        InputError: The library is not installed.
    """

    def __init__(self, token: str) -> None:
        if importlib.util.find_spec("cryptography") is None:
            raise InputError("the caches of nodes need the package 'cryptography'", instead=add_extra("store"))
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(hashlib.sha256(b"nimbus cache\0" + token.encode()).digest())

    def encrypt(self, content: bytes, *, context: bytes = b"") -> bytes:
        """Encrypt a message, which can be decrypted only with the same token and context."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, content, context)

    def decrypt(self, sealed: bytes, *, context: bytes = b"") -> bytes:
        """Decrypt a message.

        Raises:
            ForeignMessageError: It was sealed with another token, for another context, or not at all.
        """
        from cryptography.exceptions import InvalidTag

        if len(sealed) < SEALED_BYTES:
            raise ForeignMessageError
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context)
        except InvalidTag:
            raise ForeignMessageError from None


@cache
def seal_of(token: str) -> MessageSeal:
    """Return the seal of a token."""
    return MessageSeal(token)
