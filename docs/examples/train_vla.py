"""A small vision-language-action policy: image patches, instruction and joints in, action chunks by flow matching out.

    nimbus run --task docs/examples/cube_to_goal.yaml --episodes 200 --out out/cube
    python docs/examples/train_vla.py out/cube --out out/vla
    nimbus evaluate docs/examples/cube_to_goal.yaml --policy out/vla/policy

It trains in one process; the network is in ``nimbus/train/network.py``. After a stop, the same command continues.
Sequences are packed if padding costs more than 10 %. Training and evaluation need torch: in the
checkout, type pip install -e '.[train]' -c constraints.txt.
"""

from __future__ import annotations

import sys

from nimbus.datagen.errors import InputError
from nimbus.train.options import parser_of, training_of
from nimbus.train.trainer import Trainer


def main() -> int:
    """Train; return 1 after a stop, 2 for bad input."""
    args = parser_of(__doc__).parse_args()
    try:
        trainer = Trainer(training_of(args))
        form = "packed" if trainer.is_packed else "padded"
        size = sum(value.numel() for value in trainer.parameters.values())
        sys.stdout.write(f"{size} weights; {trainer.padding:.1%} of a batch is padding: {form}\n")
        return 0 if trainer.run() else 1
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
