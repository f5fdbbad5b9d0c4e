"""Proxies of the environment, and checks of the servers to which a library will send a password or token."""

from __future__ import annotations

import base64
import urllib.request
from urllib.parse import SplitResult, unquote, urlsplit

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.trusted_servers import check_trusted, is_own_machine

_OF_LINK = "169.254."
"""Beginning of the addresses of a cloud's own servers, which no user of this machine has."""


def find_proxy(parts: SplitResult) -> tuple[str, int, str] | None:
    """Return host, port and authorization of the environment's proxy for a URL; None for none.

    Raises:
        InputError: The proxy is not one of plain HTTP.
    """
    found = urllib.request.getproxies_environment().get(parts.scheme, "")
    if not found or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxy = urlsplit(found if "://" in found else f"http://{found}")
    if proxy.scheme.lower() != "http":  # a password would be sent unencrypted to a proxy that expects encryption
        what, instead = f"a proxy of the kind '{proxy.scheme}' is not supported", "give the address of one with http://"
        raise InputError(what, where=f"{parts.scheme}_proxy", instead=instead)
    words = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}".encode()
    word = f"Basic {base64.b64encode(words).decode()}" if proxy.username else ""
    return proxy.hostname or "", proxy.port or 80, word


def check_proxies() -> None:
    """Refuse a proxy of this machine to which libraries would send a password, and kinds that are not supported.

    Libraries connect again and again. When the proxy has ended, another user could listen on its port.

    Raises:
        InputError: A proxy is one of these.
    """
    for scheme in ("http", "https"):
        find_proxy(urlsplit(f"{scheme}://store.invalid"))
    for scheme in ("http", "https", "all"):
        refuse_local_password(urllib.request.getproxies_environment().get(scheme, ""), where=f"{scheme}_proxy")


def refuse_local_password(url: str, *, where: str) -> None:
    """Refuse an address with a password that a library would send unencrypted to a port of this machine.

    Args:
        url: Address of a proxy or server, with or without a scheme.
        where: Location for the error.

    Raises:
        InputError: It is one.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.username and parts.scheme.lower() != "https" and is_own_machine(parts.hostname or ""):
        what = f"a server of this machine, {parts.hostname}, needs a password, which another user could receive"
        raise InputError(what, where=where, instead="start it without a password for this user, or remove the setting")


def check_receiver(url: str) -> None:
    """Check that a library may send a secret to a URL: if it is not encrypted, not to another user of this machine.

    Args:
        url: Whole URL; others than those of HTTP without encryption are not checked.

    Raises:
        InputError: Another user of this machine has started the server, or the proxy to it.
    """
    parts = urlsplit(url)
    if parts.scheme.lower() == "http" and not (parts.hostname or "").startswith(_OF_LINK):
        host, port, _ = find_proxy(parts) or (parts.hostname or "", parts.port or 80, "")
        check_trusted(host, port)
