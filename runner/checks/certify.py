"""Certificates of a dataset: replay, fresh renderings, labels against poses, accounting; stored with the dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.certificates.record import (
    ACCOUNTING,
    FILE_NAME,
    LABELS,
    REPLAY,
    RERENDER,
    Certificate,
    Certificates,
    subject_of,
    summary_of,
    write_certificates,
)
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus, place_finder
from nimbus.datagen.store.remote.uploads import has_files
from nimbus.datagen.tasks.own_tasks import ForeignTask
from nimbus.runner.system.console import TerminalConsole
from nimbus.runner.system.threads import prepare_libraries

_UNDER_WAY = (EpisodeStatus.LEASED, EpisodeStatus.INTENT, EpisodeStatus.PENDING)
_STEPS = 6
"""Number of checked steps of an episode, in addition to the first and the last."""
_TOLD = 20
"""Largest number of problems that a certificate lists."""


def account(folder: Path, attempts: list[Attempt], states: list[EpisodeState]) -> Certificate:
    """Return the accounting certificate: every planned episode is stored, failed, quarantined or under way.

    Args:
        folder: Folder of the dataset.
        attempts: All attempts.
        states: States of all episodes.
    """
    place = place_finder(states)
    planned = {place(row)[:2] for row in (*attempts, *states)}
    stored = [attempt for attempt in attempts if attempt.path]
    missing = [attempt.path for attempt in stored if not has_files(folder, attempt)]
    done = {place(attempt)[:2] for attempt in stored}
    quarantined = {place(state)[:2] for state in states if state.state is EpisodeStatus.QUARANTINED} - done
    last = {place(attempt)[:2]: attempt.reason for attempt in attempts if attempt.final and not attempt.success}
    failed = {address: reason for address, reason in last.items() if address not in done | quarantined}
    waiting = {place(state)[:2] for state in states if state.state in _UNDER_WAY}
    waiting -= done | quarantined | failed.keys()
    lost = sorted(planned - done - quarantined - failed.keys() - waiting)
    tried = {(attempt.task, attempt.seed, attempt.idx, attempt.attempt): attempt for attempt in attempts}.values()
    problems = [f"{f'{task}, ' if task else ''}episode {index}: neither stored nor failed" for task, index in lost]
    problems += [f"{path}: missing, or its size differs from the ledger" for path in missing]
    return Certificate(
        name=ACCOUNTING,
        holds=not problems,
        checked=len(planned),
        of=len(planned),
        figures={
            "planned": len(planned),
            "stored": len(done),
            "failed": dict(Counter(failed.values()).most_common()),
            "quarantined": len(quarantined),
            "under_way": len(waiting),
            "files": len(stored),
            "attempts": len(tried),
            "failed_attempts": dict(Counter(one.reason for one in tried if not one.success).most_common()),
        },
        problems=tuple(problems[:20]),
    )


def certify(folder: Path, *, sample: int | None = 8, skills: list[Path] | None = None) -> Certificates:
    """Check a dataset of Nimbus and store the certificates with it.

    Args:
        folder: Folder of the dataset.
        sample: Number of episodes that are replayed and rendered, evenly spread over the dataset; None for all.
        skills: Folders with custom skills.

    Raises:
        InputError: There is no dataset, it has no stored episode, or the layout of one cannot be read.
        StorageError: The disk is full.
    """
    info = read_info(folder)
    if (folder / FILE_NAME).is_dir():
        raise InputError(
            "a folder has the name of the certificates' file", where=str(folder / FILE_NAME), instead="move it"
        )
    ledger = Ledger(folder, read_only=True)
    try:
        with ledger.snapshot():
            attempts, states = ledger.attempts(), ledger.episodes()
    finally:
        ledger.close()
    stored = [attempt for attempt in attempts if attempt.path]
    if not stored:
        raise InputError("no episode is stored here", where=str(folder), instead="make one with 'nimbus run' first")
    count = len(stored) if sample is None else min(sample, len(stored))
    chosen = [stored[row] for row in np.unique(np.linspace(0, len(stored) - 1, count).round().astype(int))]
    paths = [folder / attempt.path for attempt in chosen]
    for path in paths:
        _check_layout(path)
    prepare_libraries(skill_folders=skills or [])
    made = [
        account(folder, attempts, states),
        _guarded(LABELS, stored, lambda: _labels(paths, stored)),
        _guarded(RERENDER, stored, lambda: _rerender(paths, stored, info.inputs)),
        _guarded(REPLAY, stored, lambda: _replay(paths, stored)),
    ]
    return write_certificates(folder, subject_of((one.episode_id, one.sha256) for one in stored), made)


def _guarded(name: str, stored: list[Attempt], check: Callable[[], Certificate]) -> Certificate:
    """Run a check; a check that this machine cannot run is reported as not checked, not as a fault."""
    try:
        return check()
    except InputError as error:
        note = f"{error.what}; {error.instead}" if isinstance(error, ForeignTask) else error.what
        return Certificate(name=name, holds=None, checked=0, of=len(stored), note=note)


def _labels(paths: list[Path], stored: list[Attempt]) -> Certificate:
    from nimbus.datagen.datasets.certificates.labels import METRES, PIXELS, check_labels
    from nimbus.datagen.datasets.instructions import check_instruction

    views, claims, problems = 0, 0, []
    for episode in _opened(paths):
        found = check_labels(episode, _moments(episode.step_count))
        views += found.views
        problems += found.problems
        proof = check_instruction(episode)
        claims += proof.claims
        problems += [f"{episode.episode_id}, instruction: {problem}" for problem in proof.problems]
    figures = {"things_seen": views, "disagree": len(problems), "within_px": PIXELS, "within_m": METRES}
    figures |= {"claims": claims} if claims else {}
    return _certificate(LABELS, paths, stored, figures, problems, is_empty=not views)


def _rerender(paths: list[Path], stored: list[Attempt], inputs: Mapping[str, str]) -> Certificate:
    from nimbus.datagen.datasets.certificates.rerender import FreshRenders
    from nimbus.datagen.load.navigation_loader import NavigationLoader
    from nimbus.datagen.load.scene_loader import load_assets
    from nimbus.datagen.tasks.stored_pictures import shown_layout, without_pictures
    from nimbus.datagen.tasks.task import NavigationTask
    from nimbus.runner.checks.replay import check_assets, stored_task

    if {"render external", "render blender"} & inputs.keys():
        what = "an external renderer made the images, and Nimbus cannot render them again"
        raise InputError(what, where="render: external", instead="certify a run with the renderer of Nimbus")
    renders: dict[str, FreshRenders] = {}
    psnr: list[float] = []
    problems: list[str] = []
    for episode in _opened(paths):
        text = episode.provenance.task_text
        if text not in renders:
            task = stored_task(episode)
            check_assets(task, episode)
            is_driven = isinstance(task, NavigationTask)
            assets = NavigationLoader(task) if is_driven else load_assets(without_pictures(task))
            renders[text] = FreshRenders(assets, has_splats="render splats" in inputs)
        layout = shown_layout(episode.layout(), episode.provenance, where=str(episode.path))
        found = renders[text].check(episode, layout, _moments(episode.step_count))
        psnr += found.psnr
        problems += found.problems
    figures = {"pictures": len(psnr)}
    if psnr:
        figures |= {"least_dB": float(min(psnr)), "median_dB": float(np.median(psnr))}
    return _certificate(RERENDER, paths, stored, figures, problems, is_empty=not psnr)


def _replay(paths: list[Path], stored: list[Attempt]) -> Certificate:
    from nimbus.runner.checks.replay import replay

    results = [replay(path) for path in paths]
    problems = [
        f"{one.episode_id}: stored {one.stored}, replayed {one.replayed}" for one in results if not one.same_outcome
    ]
    figures = {
        "same_outcome": sum(one.same_outcome for one in results),
        "joint_error": max(one.joint_error for one in results),
        "body_error_m": max(one.body_error for one in results),
    }
    return _certificate(REPLAY, paths, stored, figures, problems)


def _certificate(
    name: str,
    paths: list[Path],
    stored: list[Attempt],
    figures: dict[str, Any],
    problems: list[str],
    *,
    is_empty: bool = False,
) -> Certificate:
    return Certificate(
        name=name,
        holds=None if is_empty else not problems,
        checked=len(paths),
        of=len(stored),
        figures=figures,
        problems=tuple(problems[:_TOLD]),
        note="the episodes have no pictures" if is_empty else "",
    )


def _opened(paths: list[Path]) -> Iterator[Any]:
    from nimbus.datagen.store.episode_file.read import EpisodeFile

    for path in paths:
        with EpisodeFile(path) as episode:
            yield episode


def _check_layout(path: Path) -> None:
    """Read the layout of an episode; a file that cannot be opened is a finding of the accounting.

    Raises:
        InputError: The layout is wrong.
    """
    from nimbus.datagen.store.episode_file.read import EpisodeFile

    with ExitStack() as stack:
        try:
            episode = stack.enter_context(EpisodeFile(path))
        except InputError:
            return
        episode.layout()


def _moments(step_count: int) -> NDArray[np.int64]:
    """Return evenly spaced steps of an episode, including the first and the last."""
    return np.unique(np.linspace(0, step_count - 1, _STEPS + 2).round().astype(np.int64))


def print_certificates(found: Certificates) -> None:
    """Print a line for each certificate, with its problems below."""
    console = TerminalConsole()
    styles = {True: ("holds", "green"), False: ("broken", "bold red"), None: ("not checked", "yellow")}
    for one in found.certificates:
        verdict, style = styles[one.holds]
        line = f"{one.name:10}  {verdict:11}  {summary_of(one)}"
        console.print(line, style=style, soft_wrap=True)
        for problem in one.problems:
            console.print(f"  {problem}", soft_wrap=True)
