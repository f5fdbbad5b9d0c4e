import time
from collections.abc import Iterator
from typing import Any

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.pipeline import RunContext, build, parse_pipeline
from nimbus.datagen.stages import Chain, Request, Stage
from tests.support import point_robot

PIPELINE = "load: map_file\nrandomize: start_and_goal\nplan+render: {point_robot: {view: 1}}\nstore: memory\n"


class Drive:
    """A chain of the point robot, with a record of its actions."""

    def __init__(self, folder, *, rows: str = "....\n.##.\n....\n", pipeline: str = PIPELINE, seed: int = 0) -> None:
        self.log: list[str] = []
        self.episodes: dict[str, Any] = {}
        path = folder / "yard.txt"
        path.write_text(rows)
        parsed = parse_pipeline(pipeline)
        self.chain = build(
            parsed,
            RunContext(seed=seed, settings={"map_path": path, "log": self.log, "episodes": self.episodes, "unused": 0}),
        )


def requests(count: int, log: list[str] | None = None, variants: tuple[int, ...] = (0,)) -> Iterator[Request]:
    for index in range(count):
        if log is not None:
            log.append(f"request {index}")
        yield Request(index=index, variants=variants)


def test_pulling_one_episode_draws_exactly_one_through_each_stage(tmp_path):
    drive = Drive(tmp_path)
    episodes = drive.chain.run(requests(100, drive.log))
    assert drive.log == []
    for index in range(2):
        stored = next(episodes)
        steps = [f"view {step}" for step in range(stored.step_count)]
        stages = [f"{stage} {index}" for stage in ("request", "load", "randomize", "plan+render", "store")]
        assert drive.log == stages + steps
        drive.log.clear()


def test_every_request_becomes_one_stored_episode_with_its_pictures(tmp_path):
    drive = Drive(tmp_path)
    with drive.chain as chain:
        stored = list(chain.run(requests(5)))
    assert [entry.index for entry in stored] == [0, 1, 2, 3, 4]
    assert all(entry.outcome.success for entry in stored)
    assert [len(drive.episodes[entry.episode_id]) for entry in stored] == [entry.step_count for entry in stored]
    assert len(drive.episodes) == 5


def test_variants_share_a_plan_and_have_ids_of_their_own(tmp_path):
    drive = Drive(tmp_path)
    stored = list(drive.chain.run(requests(1, variants=(0, 1, 2))))
    assert [entry.variant for entry in stored] == [0, 1, 2]
    assert len({entry.episode_id for entry in stored}) == 3
    assert drive.log.count("plan+render 0") == 1


def test_an_index_gives_the_same_episode_in_any_order(tmp_path):
    forward, backward = Drive(tmp_path), Drive(tmp_path)
    first = list(forward.chain.run(requests(4)))
    last = list(backward.chain.run(iter([Request(index=index) for index in (3, 1, 0, 2)])))
    assert sorted(first, key=lambda entry: entry.index) == sorted(last, key=lambda entry: entry.index)


def test_a_failed_plan_is_a_result_with_a_reason(tmp_path):
    drive = Drive(tmp_path, rows=".#.\n.#.\n")
    stored = list(drive.chain.run(requests(20)))
    assert {str(entry.outcome.reason) for entry in stored} == {"none", "no_path"}


def test_an_error_names_the_stage_and_the_episode_it_happened_in(tmp_path):
    drive = Drive(tmp_path, pipeline=PIPELINE.replace("view: 1", "break_at: 2"))
    episodes = drive.chain.run(requests(5))
    done = [next(episodes), next(episodes)]
    with pytest.raises(RuntimeError, match="a wheel came off") as caught:
        next(episodes)
    failed = done[0].episode_id.split("-")[0] + "-s0-000002-v0-"
    (note,) = caught.value.__notes__
    assert note.startswith(f"in stage plan+render, {failed}")


def test_an_error_before_there_is_an_id_names_the_index():
    class Broken(Stage[Request, Any]):
        name = "load"

        def process(self, item: Request) -> Iterator[Any]:
            raise ValueError("no scene")
            yield

    with pytest.raises(ValueError) as caught:
        next(Chain([Broken()]).run(iter([Request(index=7)])))
    assert caught.value.__notes__ == ["in stage load, episode 7"]


def test_load_validates_what_it_loads(tmp_path):
    with pytest.raises(InputError, match=r"yard.txt:2: row of 2 cells, the first has 3"):
        next(Drive(tmp_path, rows="...\n..\n").chain.run(requests(1)))
    with pytest.raises(InputError, match=r"yard.txt:1:2: unknown cell 'x'"):
        next(Drive(tmp_path, rows=".x.\n").chain.run(requests(1)))


CLOSED = ["close store", "close plan+render", "close randomize", "close load"]


def test_closing_closes_every_stage_once_last_first(tmp_path):
    drive = Drive(tmp_path)
    with drive.chain as chain:
        next(chain.run(requests(3)))
        drive.log.clear()
    drive.chain.close()
    assert drive.log == CLOSED


def test_an_error_still_closes_every_stage(tmp_path):
    drive = Drive(tmp_path, pipeline=PIPELINE.replace("view: 1", "break_at: 0"))
    with pytest.raises(RuntimeError), drive.chain as chain:
        list(chain.run(requests(3)))
    assert drive.log[-4:] == CLOSED


def test_a_stage_that_cannot_close_does_not_keep_the_others_open(tmp_path, monkeypatch):
    drive = Drive(tmp_path)

    def jam() -> None:
        drive.log.append("jam")
        raise OSError("jammed")

    monkeypatch.setattr(drive.chain.stages[2], "close", jam)
    with pytest.raises(OSError, match="jammed"):
        drive.chain.close()
    assert drive.log == ["close store", "jam", "close randomize", "close load"]


def test_closing_ends_what_is_under_way_before_the_stages_close():
    ended: list[str] = []

    class Count(Stage[Any, Any]):
        def __init__(self, name: str) -> None:
            self.name = name

        def process(self, item: Any) -> Iterator[Any]:
            try:
                yield item
                yield item
            finally:
                ended.append(f"end {self.name}")

        def close(self) -> None:
            ended.append(f"close {self.name}")

    with Chain([Count("first"), Count("last")]) as chain:
        running = chain.run(requests(2))
        next(running)
    assert ended == ["end last", "end first", "close last", "close first"]
    assert list(running) == []


def test_times_are_told_once_so_that_their_sum_is_the_total():
    def burn(seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    class Busy(Stage[Any, Any]):
        def __init__(self, name: str, *, count: int) -> None:
            self.name, self.count = name, count

        def process(self, item: Any) -> Iterator[Any]:
            for _ in range(self.count):
                burn(0.05)
                yield Request(index=item.index)

    stages: list[Stage[Any, Any]] = [Busy("load", count=1), Busy("plan", count=2), Busy("render", count=2)]
    first = Request(index=0, times={"load": 1.0})
    results = list(Chain(stages).run(iter([first, Request(index=1)])))
    assert [sorted(result.times) for result in results] == [["load", "plan", "render"], ["render"]] * 1 + [
        ["plan", "render"],
        ["render"],
    ] + [["load", "plan", "render"], ["render"], ["plan", "render"], ["render"]]
    totals = {name: sum(result.times.get(name, 0.0) for result in results) for name in ("load", "plan", "render")}
    assert totals == pytest.approx({"load": 1.1, "plan": 0.2, "render": 0.4}, rel=0.2)


def test_waiting_costs_no_cpu_time():
    class Sleepy(Stage[Any, Any]):
        name = "load"

        def process(self, item: Any) -> Iterator[Any]:
            time.sleep(0.2)
            yield Request(index=item.index)

    (result,) = Chain([Sleepy()]).run(requests(1))
    assert result.times["load"] < 0.1


def test_components_get_what_they_ask_for_and_nothing_else(tmp_path):
    drive = Drive(tmp_path)
    robot = drive.chain.stages[2]
    assert isinstance(robot, point_robot.PointRobot)
    assert (robot.view, robot.break_at) == (1, -1)
    assert [stage.name for stage in drive.chain.stages] == ["load", "randomize", "plan+render", "store"]
