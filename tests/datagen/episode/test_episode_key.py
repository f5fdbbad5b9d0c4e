"""Addresses of episodes, from which file names are made."""

from __future__ import annotations

import pytest

from nimbus.datagen.episode.layout import EpisodeKey


@pytest.mark.parametrize("task", ["../../mine", "/etc/mine", "a/b", "..", "", "a\0b", "a b", "-a", "a\n"])
def test_task_of_a_stored_episode_is_no_path(task: str):
    """A dataset stores the name of its task, and other datasets derive file names from it."""
    with pytest.raises(ValueError, match="is not a name"):
        EpisodeKey(task=task, task_hash="", seed=0, index=0)


@pytest.mark.parametrize("number", ["seed", "index", "variant"])
def test_numbers_of_an_address_are_counted_from_zero(number: str):
    with pytest.raises(ValueError, match=f"{number} -1"):
        EpisodeKey(**{"task": "t", "task_hash": "", "seed": 0, "index": 0, number: -1})  # pyright: ignore[reportArgumentType]


def test_identity_is_that_of_before():
    key = EpisodeKey(task="sort_trash-2", task_hash="0123", seed=1, index=2, variant=3)
    assert key.id == "sort_trash-2-s1-000002-v3-" + key.id[-8:] and len(key.id) == 34
