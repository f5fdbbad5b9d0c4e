"""The benchmark of four pipelines: its small form for real, and its section from figures."""

from __future__ import annotations

import pytest

from benchmarks.paper import FORMS, PIPELINES, Figures, bound, main, measure_small, write_section


def figures(costs: dict[str, float]) -> Figures:
    """Return the figures of a pipeline by the CPU seconds of its forms."""
    stages = {"randomize": 1.0, "plan": 2.0, "render": 5.0, "store": 1.0}
    return {form: {"episodes": [2, 12], "cpu_s": cost, "rows": 100.0, "stages": stages} for form, cost in costs.items()}


def test_the_section_states_speed_up_cost_and_bound():
    measured = figures({"coupled": 18.0, "fused": 9.0, "decoupled": 9.9})
    found = {"pipelines": {"manipulation": measured}, "date": "2026-01-01", "machine": {"cores": 2, "load": 1.0}}
    rows = [line for line in write_section(found) if line.startswith("| manipulation")]
    assert rows == [
        "| manipulation | `sort_trash`, 2 to 12, 100 | 18.00 | 9.00 | 9.90 | 2.00 | 0.050 |",
        "| manipulation | 0.00 | 1.00 | 2.00 | 5.00 | 1.00 | 1.50 | +0.90 |",
    ]


def test_what_was_not_measured_is_a_dash():
    found = {"pipelines": {"manipulation": figures({"coupled": 18.0})}, "date": "", "machine": {"cores": 2, "load": 1}}
    assert "| 18.00 | - | - | - | - |" in "\n".join(write_section(found))


def check(pipelines: list[str], forms: list[str]) -> None:
    """Run a small episode in each form; the stages take part of the time of the processes."""
    for kinds in measure_small(pipelines, forms)["pipelines"].values():
        assert list(kinds) == forms
        for one in kinds.values():
            stages = one["stages"]
            assert one["rows"] > 0 and bound(stages) > 1.0
            assert 0.0 < stages["render"] < sum(stages.values()) < one["cpu_s"]


@pytest.mark.slow
@pytest.mark.long  # tests of the commands run this pipeline
def test_the_small_form_measures_a_pipeline():
    check(["navigation on meshes"], ["coupled"])


@pytest.mark.long
def test_the_small_form_measures_all_pipelines(capsys: pytest.CaptureFixture[str]):
    check(list(PIPELINES), list(FORMS))
    assert main(["--small", "--pipeline", "manipulation", "--form", "coupled"]) == 0
    assert "| manipulation | `sort_trash`" in capsys.readouterr().out
