"""Captions and synonyms: from measured fields, and from a model if they agree with these fields."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.assets.annotate import annotate_library, check_words, describe
from nimbus.datagen.assets.color_names import name_color
from nimbus.datagen.language_model.client import LanguageModel, Limits
from nimbus.datagen.language_model.exchange import Address
from nimbus.datagen.language_model.records import RecordFolder
from nimbus.datagen.language_model.reply import Answer
from nimbus.datagen.objects.prepared.index import AssetEntry, AssetIndex, index_text, read_index
from tests.support.refusals import refusal
from tests.support.scripted_server import say, send, serving

MUG = AssetEntry(
    kind="mug_a",
    category="mug",
    size=(0.09, 0.08, 0.1),
    color_names=("red", "white"),
    source="a",
    path="a",
    layout="mesh",
)
SOUP = AssetEntry(
    kind="tomato_soup",
    category="soup can",
    size=(0.07, 0.07, 0.1),
    color_names=("blue",),
    source="a",
    path="b",
    layout="ycb",
)
BLOB = AssetEntry(
    kind="object_7", category="000", size=(0.2, 0.03, 0.02), color_names=("gray",), source="a", path="c", layout="urdf"
)
BAD = AssetEntry(kind="bad", refused="flat", source="a", path="d", layout="mesh")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Write an index of four kinds."""
    (tmp_path / "index.json").write_text(index_text(AssetIndex(importer="1", kinds=(BAD, MUG, BLOB, SOUP))))
    return tmp_path


def ask(library: Path, url: str, *, budget: int = 10_000) -> LanguageModel:
    return LanguageModel(
        RecordFolder(library / "replies"), Address.from_environment(url), "tiny", Limits(first_wait=0.01, budget=budget)
    )


def captions(library: Path) -> dict[str, str]:
    return {entry.kind: entry.caption for entry in read_index(library)[0].kinds}


def test_measured_fields_make_a_caption(library: Path) -> None:
    made, stopped = annotate_library(library, None, report=lambda *_: None)
    assert [words.caption for words in made] == ["red and white mug", "long gray thing", "blue soup can"]
    assert not stopped
    assert captions(library)["mug_a"] == "red and white mug" and not captions(library)["bad"]


@pytest.mark.parametrize(
    ("entry", "caption", "why"),
    [
        (MUG, "green mug", "not green"),
        (MUG, "huge red mug", "10 cm long, not huge"),
        (MUG, "red bottle", "the category is missing"),
        (MUG, "red mug with a spoon", "'spoon' names another category"),
        (MUG, "long red mug", "do not make it long"),
        (MUG, "the red mug", "or an article"),
        (MUG, "red mug}{__class__}", "not plain words"),
        (MUG, 7, "not plain words"),
        (BLOB, "gray banana thing", "'banana' names another category"),
    ],
)
def test_false_captions_are_dropped(entry: AssetEntry, caption: object, why: str) -> None:
    words = check_words(entry, Answer({"caption": caption, "synonyms": []}))
    assert why in words.dropped[0] and words.caption == describe(entry).caption


def test_true_words_are_kept() -> None:
    words = check_words(
        SOUP,
        Answer({"caption": "small blue tomato soup can", "synonyms": ["canned food", "banana", "blue can", "can"]}),
    )
    assert words.caption == "small blue tomato soup can"
    assert words.synonyms == ("canned food",) and len(words.dropped) == 3


def test_a_model_is_asked_once(library: Path) -> None:
    good = json.dumps({"caption": "red mug with white handle", "synonyms": []})
    with serving([say(good), send("busy", 503), say("no idea"), say("no idea"), say("no idea"), say(good)]) as server:
        made, _ = annotate_library(library, ask(library, server.url), report=lambda *_: None)
        count = len(server.requests)
        again, _ = annotate_library(library, ask(library, server.url), report=lambda *_: None)
        assert len(server.requests) == count and again == made
    assert made[0].caption == "red mug with white handle" and made[1].dropped and made[2].dropped


def test_a_spent_budget_loses_nothing(library: Path) -> None:
    good = json.dumps({"caption": "white and red mug", "synonyms": []})
    with serving([say(good)]) as server:
        made, stopped = annotate_library(library, ask(library, server.url, budget=50), report=lambda *_: None)
    assert len(made) == 1 and "the budget of 50 tokens is spent" in stopped
    assert captions(library)["mug_a"] == "white and red mug"


def test_no_library_is_refused(tmp_path: Path) -> None:
    assert "contains no index.json" in refusal(annotate_library, tmp_path, None, report=print)


@pytest.mark.parametrize(
    ("rgb", "name"),
    [
        ((0, 0, 0), "black"),
        ((250, 250, 245), "white"),
        ((200, 30, 30), "red"),
        ((250, 220, 40), "yellow"),
        ((110, 70, 30), "brown"),
        ((40, 80, 200), "blue"),
    ],
)
def test_colors_have_names(rgb: tuple[int, int, int], name: str) -> None:
    assert name_color(np.array(rgb)) == name


def test_library_with_a_link_is_not_annotated(library: Path, tmp_path: Path):
    """The index of another library would be copied into this one."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/index.json").symlink_to(library / "index.json")
    told = refusal(annotate_library, tmp_path / "shared", None, report=lambda *_: None)
    assert "contains links" in told and (tmp_path / "shared/index.json").is_symlink()
    assert "out of its folder" in refusal(read_index, tmp_path / "shared")
