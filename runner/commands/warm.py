"""``nimbus warm ADDRESS``: fetches a dataset from a store to this machine, or serves it to other nodes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder
from nimbus.runner.system.output import write_error, write_json, write_out


@dataclass(frozen=True)
class ServePlace:
    """Host and port to listen on, the value of ``--serve``."""

    host: str
    port: int


def parse_place(text: str) -> ServePlace:
    """Parse ``PORT``, for loopback, or ``HOST:PORT``; raises ``ValueError`` for anything else."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) >= 1 << 16:
        raise ValueError(f"expected PORT or HOST:PORT, such as 0.0.0.0:7070, found '{text}'")
    return ServePlace(host or "127.0.0.1", int(port))


def command(
    folder: DatasetFolder,
    *,
    serve: Annotated[
        ServePlace | None,
        typer.Option(
            "--serve",
            metavar="[HOST:]PORT",
            parser=parse_place,
            help="serve blocks to other nodes until Ctrl-C; they set NIMBUS_CACHE_PEERS to this address",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Fetch the missing files and print their size, or serve blocks to other nodes."""
    from nimbus.datagen.datasets.mirror import warm
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.store.remote.traffic import read_traffic
    from nimbus.datagen.store.remote.working_copy import TRAFFIC, is_remote
    from nimbus.runner.monitor.output_summary import report_pending

    if not is_remote(folder):
        raise InputError(
            "a local folder does not need to be fetched", where=str(folder), instead="give the address of a dataset"
        )
    if serve:
        from nimbus.datagen.files.server_tokens import given_token, new_token
        from nimbus.datagen.local_server import is_loopback
        from nimbus.datagen.store.remote.block_peers import TOKEN
        from nimbus.datagen.store.remote.block_server import BlockServer
        from nimbus.datagen.store.remote.cache_root import address_of

        token = given_token(TOKEN)
        made = new_token() if not token and is_loopback(serve.host) else ""
        with BlockServer(serve.host, serve.port, [address_of(folder)], token=token or made) as server:
            told = f"; readers set {TOKEN}={made}" if made else ""
            write_error(f"serving {address_of(folder)} at {server.url}{told}; Ctrl-C ends it\n")
            server.serve_forever()
    before, begin = read_traffic(folder), time.monotonic()
    count = warm(folder, report_pending)
    TRAFFIC.flush()
    now = read_traffic(folder)
    fetched, size = now.misses - before.misses, now.bytes_fetched - before.bytes_fetched
    fetched, size = fetched + now.peer_hits - before.peer_hits, size + now.bytes_from_peers - before.bytes_from_peers
    seconds = time.monotonic() - begin
    if as_json:
        write_json({"files": count, "fetched": fetched, "bytes_fetched": size, "seconds": round(seconds, 1)})
    else:
        write_out(f"{count} files on this machine; {fetched} fetched, {size / 1e6:,.0f} MB in {seconds:.1f} s\n")
    return 0
