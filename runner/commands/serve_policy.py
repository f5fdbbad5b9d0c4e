"""``nimbus serve-policy P``: serves a policy over openpi's wire, to this user of this machine only."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.installation import add_extra
from nimbus.runner.commands.options import TokenFile, whole
from nimbus.runner.system.output import write_out


def command(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="P", parser=str, help="FILE.py:FUNCTION or a trained folder, as for --policy of evaluate"
        ),
    ],
    *,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="PATH", parser=str, help="weights of FILE.py:FUNCTION, a file or folder"),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", parser=whole(0, 65535), help="port; 0: any free one")
    ] = 8000,
    token_to: TokenFile = None,
) -> int:
    """Serve a policy until Ctrl-C."""
    from nimbus.datagen.files.server_tokens import token_file
    from nimbus.datagen.policies.open_policy import open_policy

    try:
        from nimbus.datagen.policies.wires.server import PolicyServer
    except ImportError as error:
        raise InputError(f"needs the package {error.name}", where="serve-policy", instead=add_extra("policy")) from None
    options = {} if checkpoint is None else {"checkpoint": checkpoint}
    server = PolicyServer(partial(open_policy, policy, options=options), port=port)
    with token_file(token_to, server.token):
        write_out(f"{policy} answers on {server.address}; clients other than nimbus send the token {server.token}\n")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.close()
    return 0
