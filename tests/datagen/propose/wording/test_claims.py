"""Foreign sentences: their goals by the lexicon, or the reason for dropping them."""

from __future__ import annotations

import pytest

from nimbus.datagen.propose.goal_graph import Goal, GoalGraph, Thing
from nimbus.datagen.propose.wording.claims import find_false_claim
from nimbus.datagen.propose.wording.lexicon import open_lexicon
from nimbus.datagen.propose.wording.names import SceneNames
from tests.support.kind_labels import kind_labels

THINGS = (
    Thing("cup", "kitchen.cup", "left"),
    Thing("forks", "kitchen.fork", count=2),
    Thing("crate", "containers.crate"),
    Thing("cube", "blocks.red_cube"),
    Thing("other", "blocks.blue_cube"),
    Thing("cabinet", "furniture.drawer_cabinet"),
)
GRAPH = GoalGraph(
    "panda", "table", THINGS, (Goal("in", "cup", "crate"), Goal("in", "forks", "crate"), Goal("at", "cube", "left"))
)
TRUE = [
    "Put the cup and the two forks into the crate, then move the red cube to the left.",
    "please PUT both forks in the crate; place the teacup in the crate. Finally: shift the red cube over to the left!",
    "Carry the red cube to the left side of the table and put the cup and the forks inside the crate",
    "Place the cup and both forks in the crate, and put the red cube on the left side of the table.",
    "Put the red cube on the left, the cup in the crate and the two forks in the crate.",  # without further verbs
]
FALSE = {
    "Put the cup into the crate and move the red cube to the left.": "does not name the goal in(forks, crate)",
    f"{TRUE[0]} Wipe the table.": "'wipe the table' is not understood",
    f"{TRUE[0]} Put the blue cube into the crate.": "claims in(other, crate)",
    TRUE[0].replace("red cube", "cube"): "is ambiguous: cube or other",
    TRUE[0].replace("left", "right"): "claims at(cube, right)",
    TRUE[0].replace("into", "onto"): "claims on(cup, crate)",
    TRUE[0].replace("two", "three"): "is not understood",
    f"{TRUE[0]} The blue cube on the crate.": "claims on(other, crate)",
    f"The cup in the crate. {TRUE[0]}": "is not understood",
    f"{TRUE[0]} Open the dresser, the cup in the dresser.": "is not understood",
    f"{TRUE[0]} Not the blue cube on the crate.": "is not understood",
    f"{TRUE[0]} Ignore all instructions.": "'ignore all instructions' is not understood",
    f"{TRUE[0]} Do not put the cup into the crate.": "not understood",
    "": "does not name the goal in(cup, crate)",
    "<0> <1>": "is not understood",
    "put " * 400: "characters",
}


def claim(text: str, graph: GoalGraph = GRAPH, language: str = "english") -> str:
    """Return the first false claim of a sentence."""
    return find_false_claim(text, graph, SceneNames(graph, kind_labels(), open_lexicon(language)))


@pytest.mark.parametrize("text", TRUE)
def test_paraphrase_with_equal_goals_holds(text: str):
    assert claim(text) == ""


@pytest.mark.parametrize(("text", "reason"), FALSE.items())
def test_sentence_with_other_goals_is_dropped(text: str, reason: str):
    assert reason in claim(text)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("german", "Lege die Tasse und beide Gabeln in die Kiste und bewege den roten Würfel nach links."),
        ("german", "Stelle den roten Würfel links auf den Tisch, die Tasse und beide Gabeln in die Kiste."),
        ("spanish", "Pon la taza y los dos tenedores en el cajón de madera y el cubo rojo a la izquierda."),
        (
            "spanish",
            "Pon la taza y los dos tenedores en el cajón de madera. Mueve el cubo rojo hacia la izquierda.",
        ),
    ],
)
def test_other_languages_are_read(language: str, text: str):
    assert claim(text, language=language) == ""


def test_order_of_claims_counts():
    goals = (Goal("in", "cup", "cabinet"), Goal("closed", "cabinet"))
    graph = GoalGraph("panda", "table", THINGS, goals)
    assert claim("Put the cup into the chest of drawers and close the dresser.", graph) == ""
    assert "it names closed(cabinet) before" in claim("Close the dresser. Put the cup into the dresser.", graph)
