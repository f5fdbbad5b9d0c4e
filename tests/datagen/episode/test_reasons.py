"""Reasons of failure: those of Nimbus, and those of plug-ins in files."""

from __future__ import annotations

import copy

import pytest

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.files.codec import from_json, to_json


def test_a_plugins_reason_survives_files_and_copies():
    outcome = Outcome(success=False, reason=Reason("no_nudge"))
    assert from_json(Outcome, to_json(outcome)) == outcome == copy.deepcopy(outcome)
    assert outcome.reason == "no_nudge" and "no_nudge" not in list(Reason)


@pytest.mark.parametrize("name", ["", "No", "no nudge", "<b>", "a" * 41, "no_nudge\n"])
def test_other_text_is_no_reason(name: str):
    with pytest.raises(ValueError, match="is not a reason"):
        Reason(name)
    with pytest.raises(ValueError, match="reason"):
        from_json(Outcome, to_json({"success": False, "reason": name}))
