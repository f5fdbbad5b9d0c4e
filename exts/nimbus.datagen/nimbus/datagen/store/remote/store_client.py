"""Clients of stores of the library obstore: endpoint, region, credentials, and limits of time."""

from __future__ import annotations

import importlib.util
import os
from datetime import timedelta
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.trusted_servers import check_proxies, check_receiver, use_literal_hosts
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.s3_session import check_file_variables, is_public, s3_endpoint, s3_session

_IDENTITIES = ("IDENTITY_ENDPOINT", "MSI_ENDPOINT", "AZURE_IDENTITY_ENDPOINT", "AZURE_MSI_ENDPOINT")
"""Variables with the server that gives the token of an identity of Azure, and receives a secret for it."""
_CONNECT = timedelta(seconds=5)
_READ = timedelta(seconds=30)
"""Time without a byte after which a connection is abandoned [s]."""
_RETRIES = 3
_RETRY_FOR = timedelta(seconds=20)
"""Time for retries inside one call; upload queues also retry for as long as the run lasts."""


def store_client(address: StoreAddress) -> Any:
    """Make the library's client of a store, without a request to it.

    Returns:
        Store of obstore.

    Raises:
        InputError: The folder cannot be written, there are no credentials, or a setting of the store is wrong.
    """
    import obstore.store

    stores: Any = obstore.store
    timeouts: dict[str, Any] = {"connect_timeout": _CONNECT, "read_timeout": _READ}
    retry: Any = {"max_retries": _RETRIES, "retry_timeout": _RETRY_FOR}
    if address.scheme == "file":
        try:
            return stores.LocalStore(f"/{address.prefix}", mkdir=True)
        except OSError as error:  # the error number is cut off, because the library does not return it separately
            what = f"cannot be written: {str(error).partition(' (os error')[0].lower()[:160]}"
            raise InputError(what, where=str(address), instead="give a folder that you may write") from None
    use_literal_hosts()
    check_proxies()
    check_file_variables()
    config: dict[str, Any] = {}
    if address.scheme == "s3":
        config, provider = _s3_settings(address)
        if config.get("endpoint", "").lower().startswith("http://"):
            timeouts["allow_http"] = True
        return stores.from_url(
            str(address), config=config, client_options=timeouts, retry_config=retry, credential_provider=provider
        )
    for name in _IDENTITIES:
        check_receiver(os.environ.get(name, ""))
    return stores.from_url(str(address), client_options=timeouts, retry_config=retry)


def _s3_settings(address: StoreAddress) -> tuple[dict[str, Any], Any]:
    """Find endpoint, region and credentials in the order of AWS's own tools: environment, profile, role of the machine.

    Raises:
        InputError: There are no credentials, or the endpoint cannot be read.
    """
    from obstore.auth.boto3 import Boto3CredentialProvider

    session, credentials = s3_session()
    config: dict[str, Any] = {"checksum_algorithm": "SHA256", "region": session.region_name or "us-east-1"}
    if endpoint := s3_endpoint(session):
        config["endpoint"] = endpoint
    if credentials is None:
        if is_public():
            return config | {"skip_signature": True}, None
        instead = "set AWS_PROFILE or AWS_ACCESS_KEY_ID, give the machine a role, or AWS_SKIP_SIGNATURE=true (public)"
        raise InputError("no credentials for S3 found", where=str(address), instead=instead)
    return config, Boto3CredentialProvider(session)


def has_credentials(address: StoreAddress) -> bool:
    """Return True if this process can open a store: the extra is installed, and S3's credentials exist."""
    if importlib.util.find_spec("obstore") is None:
        return False
    if address.scheme != "s3":
        return True
    return s3_session()[1] is not None or is_public()
