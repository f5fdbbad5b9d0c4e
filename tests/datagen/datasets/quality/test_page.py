from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from markupsafe import Markup

from nimbus.datagen.datasets.quality.checks import Examination, examine
from nimbus.datagen.datasets.quality.finding import fail, warn
from nimbus.datagen.datasets.quality.page import render_page
from nimbus.datagen.datasets.quality.view import View, open_view
from tests.support.synthetic import make_rendered, write_dataset

ATTACK = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    folder = tmp_path_factory.mktemp("data") / "data"
    write_dataset(folder, [make_rendered(row, steps=20 + row) for row in range(3)])
    return open_view(folder)


@pytest.fixture(scope="module")
def found(view: View) -> Examination:
    return examine(view, strips=True)


def test_a_sound_dataset_is_fit_to_train_on(view: View, found: Examination):
    page = render_page("kitchen", view, found)
    assert "<title>kitchen</title>" in page and "Fit to train on." in page and "Findings" not in page
    assert page.count("data:image/jpeg") == 3 * 2 * 4
    assert all(title in page for title in ("length of episodes", "range of states", "where objects start"))


def test_faults_come_before_warnings(view: View, found: Examination):
    findings = (warn("balance", "tasks", "one of two"), fail("black", "episode 1", "dark"))
    page = render_page("kitchen", view, replace(found, findings=findings))
    assert "1 fault<" in page and "1 warning.<" in page
    assert page.index("<td>episode 1</td>") < page.index("<td>tasks</td>")
    assert "<td>1 fail</td>" in page and "<td>1 warn</td>" in page


def test_text_from_files_is_escaped(view: View, found: Examination):
    hostile = replace(
        found,
        findings=(fail("black", ATTACK, ATTACK),),
        tasks={ATTACK: 3},
        drawn=dict(found.drawn) | {f"light {ATTACK}": np.arange(3.0)},
        looks=tuple(replace(look, camera=ATTACK) for look in found.looks),
    )
    page = render_page(ATTACK, view, hostile)
    assert "<script" not in page and page.count("&lt;script&gt;") >= 2 + 2 + 1 + 1 + len(found.looks)


def test_certificates_are_shown_where_given(view: View, found: Examination):
    assert "Certificates" not in render_page("kitchen", view, found)
    assert "<table>it holds</table>" in render_page(
        "kitchen", view, found, certificates=Markup("<table>it holds</table>")
    )
