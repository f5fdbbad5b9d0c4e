"""``nimbus skills``: what the steps and conditions of a task file can say."""

from __future__ import annotations

import argparse
import sys

from nimbus.datagen import registry
from nimbus.datagen.discover import discover
from nimbus.datagen.skill import Statement

_HEADINGS = {"skill": "skills, for steps:", "predicate": "conditions, for success:"}


def command(args: argparse.Namespace) -> int:
    """Print every skill and predicate with its parameters, one line each."""
    discover(args.skills)
    for kind, heading in _HEADINGS.items():
        sys.stdout.write(f"{heading}\n")
        usages = {usage(name, registry.lookup(kind, name)): name for name in registry.names(kind)}
        width = max(map(len, usages), default=0)
        for text, name in usages.items():
            sys.stdout.write(f"  {text:<{width}}  {registry.lookup(kind, name).summary()}\n")
    return 0


def usage(name: str, model: type[Statement]) -> str:
    """How it is written, for example ``place: {object, into, height?}``; what may be left out has a question mark."""
    parameters = [field + ("" if settings.is_required() else "?") for field, settings in model.model_fields.items()]
    return f"{name}: {{{', '.join(parameters)}}}" if parameters else name
