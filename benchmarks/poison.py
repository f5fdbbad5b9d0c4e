"""Simulated detection of poison episodes: only these must be found, even if workers also die for other reasons.

Run it as ``python benchmarks/poison.py [--seeds N] [--json FILE]``. Of 1,000 episodes, 10 kill every worker that plans
(or renders) them; in any other lease, the worker dies with the background probability.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from tests.support.simulated_poison import simulate  # noqa: E402


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    figures = []
    sys.stdout.write("background  runs  found of 10  falsely, a run  deaths at each found  most at any\n")
    for background in (0.0, 0.01, 0.1, 0.3, 0.5):
        results = [simulate(background=background, seed=seed) for seed in range(arguments.seeds)]
        found = statistics.mean(result.found for result in results)
        falsely = statistics.mean(result.falsely for result in results)
        each = statistics.mean(result.deaths_of_found for result in results)
        most = max(result.most_deaths for result in results)
        sys.stdout.write(
            f"{background:<11.0%} {len(results):<5} {found:<12.1f} {falsely:<15.2f} {each:<21.1f} {most}\n"
        )
        figures += [{"background": background, "seed": seed} | asdict(each) for seed, each in enumerate(results)]
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
