"""Adapter from samples to PyTorch, which is imported only when the adapter is used."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from nimbus.datagen.datasets.training.samples import Samples


def torch_dataset(samples: Samples) -> Any:
    """Wrap samples in a ``torch.utils.data.IterableDataset``.

    In a worker process of a ``DataLoader``, the dataset iterates over the worker's part of the rank's samples. It has
    the methods ``state_dict`` and ``load_state_dict`` of :class:`Samples`, for torchdata's ``StatefulDataLoader``.

    The environment variable ``PYTHONSAFEPATH`` is set unless it is set already, also to an empty text. Workers that are
    not forked start as ``python -c``, which would import modules from the current folder; it may be a foreign dataset.
    """
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    return _kind()(samples)


@cache
def _kind() -> Any:
    from nimbus.datagen.geometry.torch_library import torch

    class SampleDataset(torch.utils.data.IterableDataset):
        """Dataset with the samples of the rank, or of one of its workers."""

        def __init__(self, samples: Samples) -> None:
            self.samples = samples

        def __iter__(self) -> Any:
            self._settle()
            return iter(self.samples)

        def __len__(self) -> int:
            return len(self.samples)

        def state_dict(self) -> Any:
            return self.samples.state_dict()

        def load_state_dict(self, state: Any) -> None:
            self._settle()
            self.samples.load_state_dict(state)

        def _settle(self) -> None:
            if info := torch.utils.data.get_worker_info():
                self.samples.work(info.id, info.num_workers)

        def __reduce__(self) -> Any:
            return torch_dataset, (self.samples,)

    return SampleDataset
