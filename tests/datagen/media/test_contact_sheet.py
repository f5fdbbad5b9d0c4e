from __future__ import annotations

import numpy as np

from nimbus.datagen.media.contact_sheet import SheetRow, draw_contact_sheet, drawable

RED = np.full((30, 40, 3), (255, 0, 0), np.uint8)


def test_pictures_stand_in_rows_of_one_height():
    sheet = draw_contact_sheet([SheetRow(pictures=[RED, RED[:15]]), SheetRow(pictures=[RED])], tile_height=60)
    red = (np.asarray(sheet) == (255, 0, 0)).all(axis=-1)
    assert sheet.size == (20 + 80 + 4 + 160 + 20, 20 + 2 * (60 + 20))
    assert red.sum() == 60 * (80 + 160 + 80)


def test_captions_and_labels_take_their_own_space():
    bare = SheetRow(pictures=[RED])
    full = SheetRow(pictures=[RED], caption="above", note="right", labels=[("first", "second")])
    heights = [draw_contact_sheet([row]).height for row in (bare, full)]
    assert heights[1] - heights[0] == 30 + 2 * 13


def test_a_sheet_of_no_rows_is_empty():
    assert draw_contact_sheet([]).size == (36, 20)


def test_accents_are_removed_before_drawing():
    assert drawable("façade à Zürich") == "facade a Zurich"
