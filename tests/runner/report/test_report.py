from __future__ import annotations

import base64
import csv
import io
import json
import re
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from nimbus.datagen.analysis.yields import YieldRow, Yields
from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import Fault, Run, TimeSpan
from nimbus.runner.commands.report import command
from nimbus.runner.media.preview import write_previews
from nimbus.runner.monitor.progress import Progress
from nimbus.runner.report import print_summary, write_report
from nimbus.runner.report.failures import build_failure_tree
from nimbus.runner.report.figures import RunFigures
from nimbus.runner.report.page import render_page
from nimbus.runner.report.summary import summarize
from nimbus.runner.report.timeline import lay_out_timelines
from nimbus.runner.report.yields import write_yields
from tests.support.synthetic import failure, make_labels, make_observations, make_rendered, open_dataset, write_dataset

ATTACK = "<script>alert(1)</script>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a dataset: three stored episodes (two show one plan, one had a failed attempt), and one given up."""
    target = tmp_path / "data"
    write_dataset(
        target,
        [
            make_rendered(0),
            make_rendered(0, variant=1, times={"render": 3.0}),
            make_rendered(1, outcome=failure(Reason.NO_PATH), attempt=0, final=False),
            make_rendered(1, attempt=1, steps=40),
            make_rendered(2, outcome=failure(Reason.NO_IK)),
        ],
    )
    Progress(target, task="sort_trash", target=4).finish("short")
    return target


class Reader(HTMLParser):
    """Collects the open tags, the text, and the addresses that a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value for name, value in attrs if name in ("src", "href") and value]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        assert tag != "script"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def test_figures_count_a_plan_once_however_many_variants_show_it(folder: Path) -> None:
    summary = summarize(folder)
    assert (summary.stored, summary.attempts, summary.successes, summary.given_up) == (3, 4, 2, 1)
    assert summary.success_rate == 0.5
    assert (summary.state, summary.target) == ("short", 4)
    assert summary.reasons == {"no_path": 1, "no_ik": 1}
    assert summary.phases == {"pick: no_path": 1, "pick: no_ik": 1}
    kinds = {row.kind: (row.attempts, row.successes) for row in summary.kinds}
    assert kinds == {"bottle": (2, 1), "can": (3, 2), "carton": (3, 1)}
    assert summary.durations == pytest.approx(
        {"shortest": 20 / 15, "median": 20 / 15, "longest": 40 / 15, "total": 80 / 15}
    )


def test_failed_attempts_are_part_of_what_an_episode_costs_and_a_shared_plan_costs_once(folder: Path) -> None:
    summary = summarize(folder)
    plan = next(stage for stage in summary.stages if stage.stage == "plan")
    assert plan.total == 6.0 and plan.per_episode == 2.0
    assert [stage.stage for stage in summary.stages] == ["plan", "render", "store"]
    assert summary.waits.keys() == {"store_wait"}


def test_what_is_loaded_once_a_run_is_no_part_of_what_an_episode_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {"plan": 1.5, "render": 3.0}
    write_dataset(
        tmp_path / "data",
        [make_rendered(0, times={"load": 7.25} | times), make_rendered(1, times={"load": 0.25} | times)],
    )
    summary = summarize(tmp_path / "data")
    assert summary.once == {"load": 7.5}
    assert "load" not in [stage.stage for stage in summary.stages]
    assert 4.5 <= summary.cpu_per_episode < 4.5 + 3.0  # storing takes some time
    print_summary(summary)
    assert re.search(r"once: load +7\.50 s", capsys.readouterr().out)
    assert "once: load</small></td><td></td><td><small>7.50 s" in write_report(tmp_path / "data").read_text()


def test_the_page_holds_everything_it_shows_and_no_script(folder: Path) -> None:
    page = write_report(folder).read_text()
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    text = " ".join(reader.words)
    for word in ("3 episodes", "no path", "no ik", "carton", "render", "store wait", "façade", "seed 0", "short"):
        assert word in text, word
    assert len(reader.loads) == 3 * 6 + 1  # and the table
    for source in reader.loads:
        head, _, data = source.partition(",")
        assert head == "data:image/jpeg;base64"
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            assert image.size in ((64, 48), (560, 460))  # a moment, or the table
    assert not re.search(r"https?://|url\(|\$[a-z]", page)


def test_text_from_outside_cannot_break_the_page(tmp_path: Path) -> None:
    first = make_rendered(0)
    object.__setattr__(first.layout.visual, "instruction", f"put <b>&</b> {ATTACK} $title {{{{ title }}}} away")
    failed = make_rendered(1, outcome=failure(Reason.NO_GRASP))
    failed = replace(failed, layout=_with_kind(failed.layout, ATTACK))
    write_dataset(tmp_path / "data", [first, failed])
    fault = Fault(time=1.0, run=1, worker=ATTACK, kind=ATTACK, detail=ATTACK, phase=ATTACK)
    reach = {ATTACK: {"origin": [0.3, -0.3], "size": [0.4, 0.35], "cell": 0.1, "reached": ["0111"]}}
    run = replace(run_of(tmp_path / "data"), state=ATTACK, workers=ATTACK, ended=2e9, settings={"reach": reach})
    span = TimeSpan(run=1, worker=ATTACK, stage=ATTACK, idx=-1, begin=run.started, end=run.started + 1)
    told(tmp_path / "data", run, fault, span)
    summary = replace(summarize(tmp_path / "data"), task=ATTACK, robot=ATTACK, reasons={ATTACK: 1}, phases={ATTACK: 1})
    plans = [replace(plan, phase=ATTACK, reason=ATTACK, detail=ATTACK) for plan in attempts_of(tmp_path / "data")]
    page = render_page(
        tmp_path / "data",
        summary,
        plans=plans,
        failures=build_failure_tree(tmp_path / "data", plans, total_seconds=1.0),
        timelines=lay_out_timelines(summary.runs, lambda _: [span], summary.fault_rows),
    )
    assert "<script" not in page and page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 20
    reader = Reader()
    reader.feed(page)
    text = " ".join(reader.words)
    assert reader.open == [] and f"{ATTACK} $title {{{{ title }}}} away" in text
    sections = (
        "Who did what",
        "Reach and yield",
        "Where objects started",
        "Planned against kept",
        "Failures",
        "Faults",
    )
    assert all(title in text for title in sections)


def attempts_of(folder: Path) -> list[Attempt]:
    with closing(Ledger(folder, read_only=True)) as ledger:
        return ledger.attempts()


def test_an_empty_dataset_has_a_report_too(tmp_path: Path) -> None:
    open_dataset(tmp_path / "data").close()
    page = write_report(tmp_path / "data").read_text()
    assert "0 episodes" in page and "Yield by kind" not in page
    print_summary(summarize(tmp_path / "data"), console=Console(file=io.StringIO()))


def test_the_command_prints_tables_and_writes_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(folder) == 0
    printed = capsys.readouterr().out
    for word in ("3 episodes stored of 4 asked", "50.0% (2 of 4)", "no path", "carton", "CPU time", "report.html"):
        assert word in printed
    assert not [line for line in printed.splitlines() if line != line.rstrip()]
    assert (folder / "report.html").is_file()


def test_json_has_every_figure_and_nothing_else_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(folder, as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["stored"], found["reasons"]["no_ik"], len(found["episodes"])) == (3, 1, 3)
    assert not (folder / "report.html").exists()


def test_a_folder_without_a_dataset_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no dataset here"):
        command(tmp_path)


def test_a_report_shows_what_is_there_and_names_what_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = summarize(folder).episodes[0].path
    (folder / gone).unlink()
    assert command(folder) == 0
    out = capsys.readouterr().out
    assert f"{gone}: missing or changed; the next run makes" in out
    assert (folder / "report.html").read_text().count('class="sample"') == 2
    assert write_previews(folder)


def told(folder: Path, *rows: object) -> None:
    """Return further rows for a dataset's ledger."""
    with closing(Ledger(folder)) as ledger:
        ledger.record(*rows)  # pyright: ignore[reportArgumentType]


def run_of(folder: Path) -> Run:
    start = min(attempt.ended for attempt in attempts_of(folder))
    return Run(id=1, started=start - 10, mode="cell", cores=2, workers="1x1")


def test_busy_devices_of_all_runs_bound_the_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run_of(folder)
    gpus = ({"GPU-aa": 20.0, "GPU-bb": 9.0}, {"GPU-aa": 11.0, "disk": 5.0})
    runs = [
        replace(first, id=number, started=first.started + number, ended=9e9, wall_seconds=40.0, busy=busy)
        for number, busy in enumerate(gpus)
    ]
    told(folder, *runs)
    assert command(folder, as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["busy_seconds"] == {"GPU-aa": 31.0, "GPU-bb": 9.0, "disk": 5.0}
    assert (found["bound_by"], found["bound_seconds"]) == ("GPU-aa", 31.0)


def test_json_has_the_stable_keys_and_they_add_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = replace(run_of(folder), state="short", wall_seconds=36.0, startup_seconds=6.0)
    told(folder, replace(ended, ended=ended.started + 36), Fault(time=0.0, run=1, worker="0", kind="hang"))
    assert command(folder, as_json=True, price_per_hour=2.0) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["episodes_asked"], found["episodes_stored"], found["attempts"], found["yield"]) == (4, 3, 4, 0.5)
    assert found["rejected"] == {"no_path": 1, "no_ik": 1}
    assert (found["faults"], found["quarantined"], found["wall_seconds"]) == ({"hang": 1}, 0, 36.0)
    assert list(found["stage_seconds"]) == sorted(("load", "randomize", "plan", "render", "store"))
    work = sum(found["stage_seconds"].values())
    assert found["bound_seconds"] == pytest.approx(max(work / 2, found["longest_episode"]))
    assert found["distance"] == pytest.approx(36.0 / found["bound_seconds"])
    assert found["bound_by"] in ("cores", "longest episode")
    assert found["cost_per_episode"] == pytest.approx(2.0 * 36 / 3600 / 3)
    assert command(folder, as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["cost_per_episode"] is None


def test_a_killed_run_took_until_the_last_that_is_known_of_it(folder: Path) -> None:
    first = run_of(folder)
    second = replace(first, id=2, started=first.started + 1000, ended=first.started + 1020, wall_seconds=20.0)
    told(folder, first, replace(second, state="done"))
    killed, done = summarize(folder).runs
    assert (killed.state, done.state, killed.stored, done.stored) == ("killed", "done", 3, 0)
    assert 10.0 <= killed.seconds < 60.0
    assert summarize(folder).wall_seconds == killed.seconds + 20.0


def test_the_page_shows_who_did_what_and_where_objects_started_and_faults(folder: Path) -> None:
    run = replace(run_of(folder), wall_seconds=30.0, state="done")
    begin = run.started
    spans = [
        TimeSpan(run=1, worker=seat, stage=stage, idx=-1, begin=begin + since, end=begin + until)
        for seat, stage, since, until in (("0", "plan", 1, 9), ("0", "render", 9, 20), ("1", "store", 3, 4))
    ]
    fault = Fault(
        time=begin + 20, run=1, worker="1", kind="hang", detail="no <stamp>", phase="plan", incident="incidents/7-hang"
    )
    told(folder, replace(run, ended=begin + 30), *spans, fault)
    page = write_report(folder, price_per_hour=0.5).read_text()
    reader = Reader()
    reader.feed(page)
    assert reader.open == [] and "incidents/7-hang/" in reader.loads
    text = " ".join(reader.words)
    for word in ("Who did what", "seat 0", "seat 1", "no <stamp>", "Where objects started", "carton", "1x1"):
        assert word in text, word
    for stage in ("plan", "render", "store", "fault"):
        assert page.count(f'<path class="s-{stage}"') == 1, stage
    assert page.count("<circle") == 2 * (2 + 2) and page.count('class="bad"') == 2 * (2 + 2)


def test_slices_of_the_timeline_show_the_stage_that_took_the_most_of_them() -> None:
    run = RunFigures(
        id=1, mode="cell", state="done", started=0.0, seconds=100.0, startup_seconds=0.0, cores=1, workers="1x0",
        stored=0, faults=0,
    )  # fmt: skip
    busy = [TimeSpan(run=1, worker="0", stage="plan", idx=-1, begin=i / 100, end=(i + 0.7) / 100) for i in range(5000)]
    busy += [
        TimeSpan(run=1, worker="0", stage="render", idx=-1, begin=(i + 0.7) / 100, end=(i + 1) / 100)
        for i in range(5000)
    ]
    (timeline,) = lay_out_timelines([run], lambda _: busy, [])
    (row,) = timeline.rows
    assert list(row.bars) == ["plan"] and len(row.bars["plan"]) < 100


def test_the_yield_ledger_is_a_table_and_part_of_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = folder / "yields.csv"
    assert command(folder, as_json=True, yields=table) == 0
    assert json.loads(capsys.readouterr().out)["flags"] == []
    rows = list(csv.DictReader(table.open()))
    kinds = {row["value"]: (row["episodes"], row["kept"]) for row in rows if row["factor"] == "kind"}
    assert kinds == {"bottle": ("2", "1"), "can": ("2", "2"), "carton": ("2", "1")}
    assert {"pose.yaw", "cell", "variant", "step"} <= {row["factor"] for row in rows}
    page = write_report(folder).read_text()
    assert all(title in page for title in ("Never or seldom kept", "Reach and yield", "Planned against kept"))
    assert "pick items" in page and "2 failed attempts took" in " ".join(page.split())
    with pytest.raises(InputError, match="cannot be written"):
        write_yields(folder / "nowhere" / "yields.csv", summarize(folder).yields)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        *((text, f"'{text}") for text in ("=1+1", "@x", "-2+cmd|' /C'!A0", " =1", "\uff1d1", "\uff0d2|x")),
        ("-0.2 to 1", "-0.2 to 1"),
        ("\n=1", "' =1"),
        ("cup;=1+1", "cup =1+1"),
        ("cup; bowl", "cup; bowl"),
    ],
)
def test_a_value_of_others_is_no_formula(tmp_path: Path, value: str, told: str) -> None:
    row = YieldRow(factor="kind", value=value, part="physical", episodes=1, kept=1, attempts=1, successes=1)
    write_yields(tmp_path / "y.csv", Yields(episodes=1, kept=1, level=0.1, rows=(row,)))
    assert next(csv.DictReader((tmp_path / "y.csv").open()))["value"] == told


def test_a_variant_that_is_never_kept_is_named_on_the_page_and_in_the_terminal(tmp_path: Path) -> None:
    items = [make_rendered(index, steps=4) for index in range(8)]
    bad = [make_rendered(index, outcome=failure(Reason.NO_GRASP)) for index in range(8, 14)]
    marked = [replace(item, layout=_with_kind(item.layout, "odd")) for item in bad]
    write_dataset(tmp_path / "data", [*items, *marked])
    summary = summarize(tmp_path / "data")
    assert [(flag.value, flag.flag) for flag in summary.yields.flags] == [("odd", "never kept")]
    console = Console(file=io.StringIO(), width=200)
    print_summary(summary, console=console)
    assert "kind odd: never kept, 0 of 6 episodes" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "never kept" in write_report(tmp_path / "data").read_text()


def _with_kind(layout: Layout, kind: str) -> Layout:
    first, *others = layout.physical.objects
    objects = (replace(first, kind=kind), *others)
    return replace(layout, physical=replace(layout.physical, objects=objects))


def test_kept_failures_are_pictured_in_the_tree(tmp_path: Path) -> None:
    shown = {"labels": make_labels(), "observations": make_observations(20)}
    items = [make_rendered(0), make_rendered(1, outcome=failure(Reason.NO_PATH), **shown)]
    write_dataset(tmp_path / "data", items, keep_failures=True)
    tree = write_report(tmp_path / "data").read_text().partition('<ul class="tree">')[2].partition("</section>")[0]
    assert "no path" in tree and "closest 3 cm short" in tree and tree.count("data:image/jpeg") == 1


def test_a_run_that_stored_nothing_tells_what_its_failures_took(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "data"
    write_dataset(folder, [make_rendered(0, outcome=failure(Reason.NO_PATH))], keep_failures=True)
    summary = summarize(folder)
    kept = sum(path.stat().st_size for path in (folder / "failures").glob("*.hdf5"))
    assert (summary.stored, summary.failure_bytes) == (0, kept) and kept
    print_summary(summary)
    said = capsys.readouterr().out
    assert "CPU in all, none stored" in said and "written, failures" in said and "an episode" not in said
    page = write_report(folder).read_text()
    assert "CPU time in all, none stored" in page and " 0 Hz" not in page and "<b>0 kB</b>" not in page


def test_links_in_the_dataset_are_not_written_through(folder: Path, tmp_path: Path) -> None:
    (mine := tmp_path / "mine.txt").write_text("mine")
    for name in ("report.html", "report.html.tmp", ".report.html.1-2.tmp", "README.md.tmp", "status.json.tmp"):
        (folder / name).symlink_to(mine)
    write_report(folder)
    assert mine.read_text() == "mine" and "<h1>" in (folder / "report.html").read_text()


def test_pages_may_load_and_run_nothing(folder: Path) -> None:
    page = write_report(folder).read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy and policy[1].startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")
    assert page.index("Content-Security-Policy") < page.index("<title>")
