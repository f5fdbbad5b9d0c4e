"""Settings of S3 in the environment and in AWS's files: credentials and endpoint, the same for all clients."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.trusted_servers import check_receiver, literal_url
from nimbus.datagen.files.variables import variable_path

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables that name a custom store, in order of preference."""
_FILE_VARIABLES = (
    *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE", "BOTO_CONFIG", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    *("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AZURE_FEDERATED_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""Variables with files that the libraries of stores read. A file of AWS can name a program for credentials, so that a
relative path, which begins in the current folder, would let a dataset of others start programs."""


def check_file_variables() -> None:
    """Refuse relative paths in variables with files that the libraries of stores read.

    Raises:
        InputError: A variable holds a relative path.
    """
    for name in _FILE_VARIABLES:
        if text := os.environ.get(name):
            variable_path(name, text)


def s3_session() -> tuple[Any, Any]:
    """Return boto3's session and the credentials of this process; None if there are none.

    Raises:
        InputError: A variable holds a relative path, or the credentials cannot be read.
    """
    import boto3
    from botocore.exceptions import BotoCoreError

    _install_check()
    check_file_variables()
    try:
        session = boto3.Session()
        return session, session.get_credentials()
    except (BotoCoreError, ValueError) as error:  # a program for credentials may print anything
        what, instead = f"no credentials for S3: {str(error)[:160]}", "check AWS_PROFILE and the files in ~/.aws"
        raise InputError(what, instead=instead) from None


def is_public() -> bool:
    """Return True if the user reads objects that need no credentials."""
    return os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true")


@cache
def _install_check() -> None:
    """Make the library check each server before a request: it sends tokens to servers for credentials and roles."""
    from botocore.httpsession import URLLib3Session

    send = URLLib3Session.send

    def send_checked(session: Any, request: Any) -> Any:
        check_receiver(request.url)
        return send(session, request)

    sessions: Any = URLLib3Session
    sessions.send = send_checked


def s3_endpoint(session: Any) -> str | None:
    """Return the URL of the store: of a variable, else of the profile; None for Amazon's.

    All clients get it from here, so that they use the same store.

    Args:
        session: Session of :func:`s3_session`.

    Raises:
        InputError: It is no URL, or the profile names a section that does not exist.
    """
    source = next((name for name in _ENDPOINTS if os.environ.get(name)), "")
    if not (found := os.environ[source] if source else _profile_endpoint(session._session)):
        return None
    if not found.lower().startswith(("http://", "https://")):
        what, instead = "the endpoint of S3 is no URL", "begin it with https:// or http://"
        raise InputError(what, where=source or "endpoint_url of the profile of AWS", instead=instead)
    return literal_url(found)


def _profile_endpoint(core: Any) -> str:
    """Return the endpoint that the profile names for S3, or for all services; empty for none."""
    if core.get_config_variable("ignore_configured_endpoint_urls"):
        return ""
    profile = core.get_scoped_config()
    section = profile.get("services")
    services = core.full_config.get("services", {}).get(section, {}) if section else {}
    if section and not services:
        what, instead = f"there is no section [services {section}]", "write it, or remove 'services' from the profile"
        raise InputError(what, where="configuration of AWS", instead=instead)
    own = services.get("s3")
    return (own.get("endpoint_url") if isinstance(own, dict) else "") or profile.get("endpoint_url", "")
