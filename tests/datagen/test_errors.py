"""Errors that a user can fix are one line."""

from __future__ import annotations

import pytest

from nimbus.datagen.errors import InputError, StorageError, suggest


@pytest.mark.parametrize(
    ("where", "instead", "line"),
    [
        ("", "", "wrong"),
        ("a.yaml:3:1", "", "a.yaml:3:1: wrong"),
        ("", "write 1", "wrong; write 1"),
        ("--seed", "write 1", "--seed: wrong; write 1"),
    ],
)
def test_an_input_error_is_one_line_of_place_mistake_and_remedy(where: str, instead: str, line: str):
    error = InputError("wrong", where=where, instead=instead)
    assert (str(error), error.what, error.where, error.instead) == (line, "wrong", where, instead)


def test_exit_codes_tell_bad_input_from_a_full_disk():
    assert (InputError("").exit_code, StorageError("").exit_code) == (2, 1)


def test_a_storage_error_is_shown_like_bad_input():
    assert isinstance(StorageError("full"), InputError)


def test_the_nearest_name_is_offered_when_one_is_near():
    assert suggest("botle", ["can", "bottle"]) == "did you mean 'bottle'? known: bottle, can"
    assert suggest("xyz", ["can", "bottle"]) == "known: bottle, can"
    assert suggest("xyz", iter(())) == "known: none"


def test_a_part_of_a_message_has_an_end():
    error = InputError("wrong " * 1000, where="a.yaml:3:1", instead="write " * 1000)
    assert len(str(error)) < 1050 and str(error).startswith("a.yaml:3:1: wrong ") and str(error).endswith("…")
    assert "…; write" in str(error)


def test_a_message_holds_nothing_that_a_terminal_obeys() -> None:
    """Libraries quote the bytes of a file, and a program that uses Nimbus may print the message."""
    error = InputError("type: \x0f", where="\x1b[2J.yaml", instead="write \u202e")
    assert str(error) == "\\x1b[2J.yaml: type: \\x0f; write \\u202e" and error.what == "type: \\x0f"
