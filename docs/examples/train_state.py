"""A state-based policy, trained on a CPU in two minutes: from joints and object poses to the next 16 actions.

    nimbus run --task docs/examples/cube_to_goal.yaml --episodes 200 --images none --out out/cube
    python docs/examples/train_state.py out/cube --out out/policy
    nimbus evaluate docs/examples/cube_to_goal.yaml --policy out/policy

The dataset is a Nimbus dataset, which needs no images. No other package is needed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import nimbus.runner  # noqa: F401, its import limits the numerical libraries to one thread
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.perceptron import TrainingSettings
from nimbus.datagen.policies.state_training import Demonstrations, train_state_policy, write_state_policy
from nimbus.runner.system.threads import prepare_libraries


def main() -> int:
    """Read, train, write; return 2 for bad input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--episodes", type=int, help="use only the first N episodes")
    parser.add_argument("--displaced", type=int, default=0, help="displaced copies of each row with a held object")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    prepare_libraries()
    try:
        data = Demonstrations.read(args.dataset, limit=args.episodes, copies=args.displaced)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{data.episode_count} episodes, {len(data.inputs)} rows, {data.inputs.shape[1]} inputs\n")
    weights = train_state_policy(
        data,
        settings=TrainingSettings(steps=args.steps, seed=args.seed),
        report=lambda step, loss: print(f"step {step}: loss {loss:.4f}", flush=True),  # noqa: T201
    )
    write_state_policy(args.out, weights, data.settings)
    sys.stdout.write(f"policy: {args.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
