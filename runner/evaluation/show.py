"""Results of an evaluation in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from nimbus.runner.evaluation.compare import Comparison, pair
from nimbus.runner.evaluation.measures import AnswerTimes, EpisodeMeasures
from nimbus.runner.evaluation.results import Evaluation, rate_text

_SHOWN = 12
"""Largest number of lines of a list."""


def lines_of(evaluation: Evaluation, times: AnswerTimes | None = None) -> Iterator[str]:
    """Yield the lines of the results: rate with its interval, reasons, kinds, measures, faults.

    Args:
        evaluation: The results.
        times: Time that it waited for answers.
    """
    rate = rate_text(evaluation.success_count, len(evaluation.judged), evaluation.interval)
    where = f"{evaluation.split} layouts of seed {evaluation.seed}"
    yield f"{evaluation.task}: {rate} on {where}"
    yield f"policy {evaluation.policy}, {evaluation.execute} actions per answer, at most {evaluation.limit} steps"
    if reasons := evaluation.reason_lines():
        yield "failures, with the state at the end:"
        yield from (f"  {number:4d}  {reason}" for reason, number in list(reasons.items())[:_SHOWN])
    count, example = evaluation.wild_example()
    if example:
        yield f"wild actions: {count} such as: {example}"
    kinds = evaluation.by_kind()
    if len(kinds) > 1:
        worst = sorted(kinds.items(), key=lambda entry: (entry[1][0] / entry[1][1], entry[0]))[:_SHOWN]
        yield "kinds, the hardest first:"
        yield from (f"  {kept:4d} of {number}  {kind}" for kind, (kept, number) in worst)
    yield from (f"{name}: {value}" for name, value in measure_facts(evaluation, times))
    if evaluation.fault_count:
        yield f"faults of the policy: {evaluation.fault_count} attempts, repeated and not counted"
        detail = next((one.detail for one in evaluation.layouts if one.is_lost), "")
        if detail:
            yield f"  {detail}"
    if evaluation.trained_layouts:
        yield f"not held out: the policy was trained on {evaluation.trained_layouts} of these layouts"
    if not evaluation.is_repeatable:
        yield "not repeatable: with the same seed, the answers differ; draw random numbers from episode.seed alone"
    if not evaluation.is_valid:
        yield f"invalid: {evaluation.why_invalid}"


def measure_facts(evaluation: Evaluation, times: AnswerTimes | None = None) -> Iterator[tuple[str, str]]:
    """Facts beside the rate, name and value: steps, lag, clipped actions, contacts, waiting."""
    if not evaluation.judged:
        return
    if evaluation.success_count:
        yield "steps to success", f"{evaluation.median_steps:.0f} in the median"
    found, steps = evaluation.measures, sum(one.steps for one in evaluation.judged)
    yield "largest lag behind a command", f"{found.lag:.2f} rad"
    yield "clipped actions", f"{found.clipped} of {steps}{_clipped_parts(found)}"
    depths = f"{1000 * found.held_depth:.2f} mm in the hand, {1000 * found.fixed_depth:.2f} mm with fixed things"
    yield "deepest contacts", depths
    if times and times.line:
        yield "waited for answers", times.line


def _clipped_parts(found: EpisodeMeasures) -> str:
    """Return which commands were clipped and by how much: grippers slightly beyond their limits are no problem."""
    if not found.clipped:
        return ""
    grippers = f"grippers by at most {1000 * found.gripper_excess:.1f} mm or mrad"
    if not found.clipped_arm:
        return f", none of an arm joint; {grippers}"
    return f", {found.clipped_arm} of an arm joint, by at most {found.arm_excess:.3f} rad; {grippers}"


def lines_of_control(evaluation: Evaluation, control: Evaluation) -> Iterator[str]:
    """Yield lines that compare an evaluation with the unperturbed one of the same layouts."""
    found = pair(control, evaluation)
    yield f"not randomized: {found.first} of {found.layouts}, {evaluation.randomize}: {found.second}"
    yield f"McNemar's exact test: p = {found.p_value:.3g}"


def lines_of_comparison(found: Comparison, names: tuple[str, str]) -> Iterator[str]:
    """Lines of a comparison: successes of both, the test, the layouts that changed."""
    for name, count in zip(names, (found.first, found.second), strict=True):
        yield f"{count:4d} of {found.layouts}  {name}"
    yield f"McNemar's exact test: p = {found.p_value:.3g}"
    if found.both:
        steps = " and ".join(f"{count:.0f}" for count in found.median_steps)
        yield f"steps where both succeed ({found.both} layouts): {steps} in the median"
    for name, layouts in zip(names, (found.only_first, found.only_second), strict=True):
        if layouts:
            more = f" and {len(layouts) - _SHOWN} more" if len(layouts) > _SHOWN else ""
            yield f"only {name}: layouts {', '.join(map(str, layouts[:_SHOWN]))}{more}"
