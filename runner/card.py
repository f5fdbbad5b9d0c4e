"""``nimbus card DATASET``: a README.md with figures and pictures; with YAML front matter where LeRobot reads it."""

from __future__ import annotations

import argparse
import sys

from nimbus.datagen.datasets.export.publication import CARD, CARD_PICTURE, is_own_card
from nimbus.datagen.datasets.quality.checks import examine
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.publish import disk, replace_text
from nimbus.runner.media.preview import write_view_sheet
from nimbus.runner.report.card import render_card
from nimbus.runner.system import threads as threads  # one thread each

_PICTURES = 2_000
"""Pictures looked at for the verdict of QA: a card is no replacement for it."""


def command(args: argparse.Namespace) -> int:
    """Write the card and its picture."""
    view = open_view(args.folder)
    path = args.out or args.folder / CARD
    if path.exists() and not is_own_card(path):
        raise InputError("a card that somebody wrote", where=str(path), instead="give --out FILE")
    picture = path.with_name(CARD_PICTURE)
    if picture.exists() and not is_own_card(path):
        raise InputError("a picture that somebody made", where=str(picture), instead="give --out in another folder")
    found = examine(view, Thresholds(pictures=_PICTURES))
    with disk(path):
        has_picture = write_view_sheet(view, picture)
    replace_text(path, render_card(args.folder, view, found, license=args.license, has_picture=has_picture))
    sys.stdout.write(f"card: {path}\n")
    return 0
