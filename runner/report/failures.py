"""The report's failure tree: steps, reasons, what they cost, and a picture of each that was kept."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path

from PIL import Image

from nimbus.datagen.analysis.covariates import failed_step
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.preview import camera_order

_MOST = 40
"""Leaves that are shown."""


def render_failures(folder: Path, plans: Sequence[Attempt]) -> str:
    """The tree as HTML; empty where no attempt failed.

    Args:
        folder: Of the dataset.
        plans: Attempts, one for each plan.
    """
    failed = [plan for plan in plans if not plan.success]
    if not failed:
        return ""
    steps: dict[str, list[Attempt]] = {}
    for attempt in failed:
        steps.setdefault(failed_step(attempt), []).append(attempt)
    spent, total = _seconds(failed), _seconds(plans)
    share = f", {spent / total:.1%} of all" if total else ""
    kept = sum(attempt.failure is not None for attempt in failed)
    told = f"{kept} of them kept, in failures/" if kept else "none kept; run with --keep-failures to see them"
    attempts = f"{len(failed)} failed attempt{'' if len(failed) == 1 else 's'}"
    text = [f"<p>{attempts} took {spent:.1f} s CPU{share}; {told}.</p><ul class='tree'>"]
    shown = 0
    for step, mine in sorted(steps.items(), key=lambda entry: -len(entry[1])):
        text.append(f"<li><b>{escape(step)}</b> {len(mine)} <small>{_seconds(mine):.1f} s</small><ul>")
        for (reason, phase), leaf in _leaves(mine):
            shown += 1
            text.append(_leaf(folder, reason, phase, leaf) if shown <= _MOST else "")
        text.append("</ul></li>")
    return "".join(text) + "</ul>"


def _leaves(attempts: Sequence[Attempt]) -> list[tuple[tuple[str, str], list[Attempt]]]:
    found: dict[tuple[str, str], list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault((attempt.reason, _part(attempt.phase)), []).append(attempt)
    return sorted(found.items(), key=lambda entry: -len(entry[1]))


def _part(phase: str) -> str:
    """The part of a skill, behind its name and its target."""
    if phase.startswith("success"):
        return phase.removeprefix("success").strip()
    return " ".join(phase.split(" ")[2:])


def _leaf(folder: Path, reason: str, phase: str, attempts: Sequence[Attempt]) -> str:
    sample = next((attempt for attempt in attempts if attempt.failure), attempts[0])
    picture = _picture(folder / sample.failure.path) if sample.failure else ""
    words = f"{escape(reason.replace('_', ' '))}{f', {escape(phase)}' if phase else ''}"
    detail = f'<small>"{escape(sample.detail[:160])}" ({escape(sample.episode_id)})</small>' if sample.detail else ""
    return f"<li>{picture}{words} <b>{len(attempts)}</b> <small>{_seconds(attempts):.1f} s</small><br>{detail}</li>"


def _seconds(attempts: Sequence[Attempt]) -> float:
    """CPU seconds, waits left out."""
    return sum(s for one in attempts for name, s in one.times.items() if not name.endswith("_wait") and name != "load")


def _picture(path: Path) -> str:
    """The last moment of a kept failure, as its first camera saw it; nothing where it cannot be read."""
    try:
        with EpisodeFile(path) as episode:
            if not episode.cameras:
                return ""
            camera = camera_order(episode)[0]
            pixels = episode.rows(f"observations/images/{camera}", episode.step_count - 1)
    except InputError:
        return ""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=80)
    return f'<img alt="" src="data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
