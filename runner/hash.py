"""``nimbus hash DIR``: one hash over a dataset's episode ids and their data, not over times, hosts or versions."""

from __future__ import annotations

import argparse
import sys

from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.episode_file.content_hash import LEVELS
from nimbus.datagen.store.verify import dataset_hashes


def command(args: argparse.Namespace) -> int:
    """Print a line a level: hash, level, what it compares."""
    hashes = dataset_hashes(args.folder, fields=args.fields)
    if args.json:
        sys.stdout.write(to_json(hashes, indent=2) + "\n")
    else:
        for level, digest in hashes.items():
            sys.stdout.write(f"{digest}  {level}: {LEVELS[level]}\n")
    return 0
