"""The policy of train_vla.py on several ranks, which are started again when one dies or hangs.

    python docs/examples/train_ddp.py out/cube --out out/vla --ranks 2
    torchrun --nproc-per-node 8 docs/examples/train_ddp.py out/cube --out out/vla --device cuda --dtype bf16

Ranks average their gradients with gloo on a CPU and nccl on GPUs. Killed or stopped, the same command goes on from the
last checkpoint, also with another number of ranks: each step has the same samples on any number of them. With torchrun,
that watches the ranks; on several machines each needs the dataset and the folder. It wants torch:
pip install 'nimbus-datagen[train]'.
"""

from __future__ import annotations

import os
import sys

from nimbus.datagen.errors import InputError
from nimbus.train.options import parser_of, training_of
from nimbus.train.ranks import Ranks, own_rank
from nimbus.train.streams import check_ranks
from nimbus.train.trainer import Trainer


def main() -> int:
    """Watch the ranks, or be one; 1 when it failed or was stopped, 2 for bad input."""
    parser = parser_of(__doc__)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--hang", type=float, default=10.0, help="seconds of a step that are a hang")
    parser.add_argument("--start", type=float, default=60.0, help="seconds that the first step may take")
    parser.add_argument("--shard", action="store_true", help="FSDP2: run on CPUs only so far")
    parser.add_argument("--fp8", action="store_true", help="FP8 by torchao: not run yet")
    args = parser.parse_args()
    try:
        wanted = training_of(args)
        if (own := own_rank()) is not None:
            rank, ranks = own
            if args.device == "cuda":
                args.device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
            return 0 if Trainer(training_of(args), rank=rank, ranks=ranks).run() else 1
        check_ranks(args.ranks, wanted.streams)
        command = [sys.executable, *sys.argv]
        return Ranks(command, count=args.ranks, folder=args.out, hang=args.hang, start=args.start).run()
    except InputError as error:
        if os.environ.get("RANK", "0") == "0":
            sys.stderr.write(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
