"""``make fuzz``: thousands of damaged inputs of every sort from one seed; each must be read or refused in one line.

``python -m tools.fuzz.run --inputs 5000 --seed 1``; ``--sort datasets --number 17`` runs one input again.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from nimbus.runner.system.threads import prepare_libraries
from tools.fuzz.batches import SECONDS, Batch, Finding, quiet
from tools.fuzz.sort import Sort
from tools.warm_cache import compile_kernels

_BATCH = 25
"""Number of inputs that one child process runs in sequence."""
_TOLD = 100
"""Number of inputs between two lines of progress."""
_LIBRARIES = ("av", "h5py", "pyarrow.parquet", "nimbus.runner.cli", "nimbus.runner.commands.parser")
_LIBRARIES += ("nimbus.datagen.objects.libraries", "nimbus.datagen.load.scene_loader")
_LIBRARIES += ("nimbus.datagen.render.stacked", "nimbus.runner.media.object_sheet", "nimbus.runner.report")
"""Libraries imported once, before child processes are forked."""


def sorts() -> tuple[Sort, ...]:
    """List every sort of inputs."""
    from tools.fuzz import authored, datasets, demonstrations, episodes, lerobot, meshes, pages, policies, runs, scenes

    known = (datasets.SORT, episodes.SORT, *lerobot.SORTS, *authored.SORTS, meshes.SORT, pages.SORT)
    return (*known, *policies.SORTS, *runs.SORTS, *scenes.SORTS, *demonstrations.SORTS)


def fuzz(
    chosen: Sequence[Sort],
    *,
    inputs: int,
    seed: int,
    seconds: float = float("inf"),
    first: int = 0,
    hang: float = SECONDS,
) -> Iterator[tuple[str, Finding | None]]:
    """Run inputs, alternating between sorts; yield each input's sort and its finding, if any.

    Args:
        chosen: The sorts.
        inputs: Number of inputs of all sorts together; each gets the same share, rounded up.
        seed: Seed of all mutations.
        seconds: Time after which no new batch begins [s].
        first: Number of the first input of each sort.
        hang: Time after which an input counts as a hang [s].
    """
    left = {sort.name: math.ceil(inputs / len(chosen)) for sort in chosen}
    end, at = time.monotonic() + seconds, Counter[str]()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        root = Path(place)
        (root / "outside").mkdir()
        while any(left.values()) and time.monotonic() < end:
            for sort in chosen:
                count = min(_BATCH, left[sort.name])
                if not count or time.monotonic() >= end:
                    continue
                begin = first + at[sort.name]
                for _, finding in _batch(sort, root, seed, hang).run(range(begin, begin + count)):
                    yield sort.name, finding
                left[sort.name] -= count
                at[sort.name] += count


def _batch(sort: Sort, root: Path, seed: int, hang: float) -> Batch:
    good, work = root / f"good-{sort.name}", root / "work"
    if not good.exists():
        _in_child(partial(sort.make, good), f"good input of {sort.name}")
    work.mkdir(exist_ok=True)
    return Batch(sort=sort, good=good, work=work, seed=seed, seconds=hang)


def _in_child(make: Callable[[], object], what: str) -> None:
    """Call a function in a child process, because threads that libraries start would make later forks unsafe.

    Raises:
        RuntimeError: The child process failed.
    """
    child = os.fork()
    if not child:
        code = 1
        try:
            make()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"no {what}")


def _peak() -> int:
    """Return the largest memory of a process that has ended, with its children [MiB]."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10


def main(words: Sequence[str] | None = None) -> int:
    """Run the inputs; return 1 if there are findings."""
    known = {sort.name: sort for sort in sorts()}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hang", type=float, default=SECONDS, help="time after which an input counts as a hang [s]")
    parser.add_argument("--sort", action="append", choices=sorted(known))
    parser.add_argument("--number", type=int, help="run only this input")
    options = parser.parse_args(words)
    chosen = [known[name] for name in options.sort or known]
    quiet()
    # The user's kernel cache is used here: with a new cache, kernels would be compiled during some input.
    prepare_libraries()
    with tempfile.TemporaryDirectory(prefix="fuzz-cache-") as cache:
        os.environ["NIMBUS_CACHE"] = cache
        for name in _LIBRARIES:
            importlib.import_module(name)
        _in_child(compile_kernels, "compiled kernels")
        inputs, first = (len(chosen), options.number) if options.number is not None else (options.inputs, 0)
        begin, done, found = time.monotonic(), Counter[str](), []
        peak, most, last = 0, "", ""
        limits = {"seconds": options.seconds, "hang": options.hang}
        for name, finding in fuzz(chosen, inputs=inputs, seed=options.seed, first=first, **limits):
            done[name] += 1
            if (now := _peak()) > peak:  # of processes that have ended, so of the batch before
                peak, most = now, last
            last = name
            if done.total() % _TOLD == 0:
                sys.stderr.write(f"{done.total()} inputs, {len(found)} findings, {time.monotonic() - begin:.0f} s\n")
            if finding:
                found.append(finding)
                sys.stdout.write(f"{finding}\n\n")
                sys.stdout.flush()
    kinds = Counter(finding.kind for finding in found)
    if (now := _peak()) > peak:
        peak, most = now, last
    counts = ", ".join(f"{count} {name}" for name, count in done.items())
    sys.stdout.write(
        f"{done.total()} inputs ({counts}) in {time.monotonic() - begin:.0f} s, seed {options.seed}, "
        + f"peak {peak} MiB ({most}): "
        + (", ".join(f"{count} x {kind}" for kind, count in kinds.items()) or "nothing found")
        + "\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
