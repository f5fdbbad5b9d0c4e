"""The network of train_vla.py as a Lightning module, for users of Lightning's training loop.

    pip install -e '.[train]' lightning -c constraints.txt    # in the checkout
    python docs/examples/lightning_vla.py out/cube --steps 2000 --out out/vla

It trains on one device. Only the policy is written, because Lightning's checkpoints are pickle files. train_ddp.py also
continues after kills, and trains on several ranks.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nimbus.datagen.datasets.training.samples import Samples
from nimbus.datagen.datasets.training.torch_dataset import torch_dataset
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.torch_library import torch  # before lightning: runs nothing of the current folder
from nimbus.train.sequences import make_batch
from nimbus.train.trainer import Trainer, Training

try:
    import lightning
except ImportError:
    sys.stderr.write("lightning is not installed; pip install lightning\n")
    sys.exit(2)


class LightningVla(lightning.LightningModule):
    """Loss and optimizer of the network."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__()
        self.network, self._rate = trainer.network, trainer.wanted.rate

    def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
        """Return the mean loss of a batch."""
        loss = self.network(batch).mean()
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return AdamW, as in the other recipes."""
        return torch.optim.AdamW(self.parameters(), lr=self._rate, weight_decay=1e-4)


def main() -> int:
    """Train and write the policy; return 2 for bad input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--size", type=int, default=32)
    args = parser.parse_args()
    try:
        trainer = Trainer(Training(dataset=args.dataset, out=args.out, steps=args.steps))
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    samples = Samples(trainer.reader)

    def collate(rows: list[dict]) -> dict[str, torch.Tensor]:
        return trainer.to_tensors(make_batch(rows, trainer.cameras, seed=0, epoch=samples.epoch))

    loader = torch.utils.data.DataLoader(torch_dataset(samples), batch_size=args.size, collate_fn=collate)
    loop = lightning.Trainer(
        max_steps=args.steps, logger=False, enable_checkpointing=False, accelerator=trainer.group.device
    )
    loop.fit(LightningVla(trainer), loader)
    trainer.write_policy(trainer.parameters)
    return 0


if __name__ == "__main__":
    sys.exit(main())
