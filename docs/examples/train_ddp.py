"""The policy of train_vla.py on several ranks, which are restarted when one dies or hangs.

    python docs/examples/train_ddp.py out/cube --out out/vla --ranks 2
    torchrun --nproc-per-node 8 docs/examples/train_ddp.py out/cube --out out/vla --device cuda --dtype bf16

Ranks average their gradients with gloo on a CPU and nccl on GPUs. After a kill or a stop, the same command continues
from the last checkpoint, also with another number of ranks, because each step has the same samples on any number of
ranks. With torchrun, torchrun monitors the ranks. On several machines, each needs access to the dataset and the folder.
Training needs torch: in the checkout, type pip install -e '.[train]' -c constraints.txt.
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
    """Monitor the ranks, or run as one; return 1 after a failure or a stop, 2 for bad input."""
    parser = parser_of(__doc__)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--hang", type=float, default=10.0, help="duration after which a step counts as a hang [s]")
    parser.add_argument("--start", type=float, default=60.0, help="time limit of the first step [s]")
    parser.add_argument("--shard", action="store_true", help="use FSDP2; only tested on CPUs so far")
    parser.add_argument("--fp8", action="store_true", help="use FP8 by torchao; not tested yet")
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
