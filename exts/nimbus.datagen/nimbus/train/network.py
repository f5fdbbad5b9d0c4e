"""Small vision-language-action network: patches, bytes and joints in, a chunk of actions out by flow matching.

A sequence consists of the patches of all cameras, the instruction, the joints, and the noisy actions; every token
attends to all tokens of its sequence. Sequences of a batch are padded to the longest, or packed without padding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from nimbus.train.sequences import MAX_BYTES

EULER_STEPS = 10
"""Number of Euler steps from noise to actions."""


@dataclass(frozen=True, kw_only=True)
class VlaSizes:
    """Sizes of the network."""

    cameras: int
    height: int
    """Height of the images [px]."""
    image_width: int
    """Width of the images [px]."""
    state: int
    action: int
    horizon: int = 16
    """Number of actions in a chunk."""
    patch: int = 16
    """Edge of a patch [px]."""
    width: int = 128
    depth: int = 4
    heads: int = 4

    @property
    def patches(self) -> int:
        """Number of patches of one image; the remainder at the right and the bottom is unused."""
        return (self.height // self.patch) * (self.image_width // self.patch)

    def token_count(self, byte_count: int) -> int:
        """Return the number of tokens of a sequence with an instruction of so many bytes."""
        return self.cameras * self.patches + byte_count + 1 + self.horizon

    def as_options(self) -> dict[str, float]:
        """Return plain numbers by name."""
        return asdict(self)


class VlaNetwork(nn.Module):
    """Network with scaling: states and actions are given and returned as stored [rad or m].

    Args:
        sizes: Sizes of the network.
        is_packed: True to concatenate the sequences of a batch without padding.
    """

    def __init__(self, sizes: VlaSizes, *, is_packed: bool = False) -> None:
        super().__init__()
        self.sizes, self.is_packed = sizes, is_packed
        width = sizes.width
        self.patch_embedding = nn.Conv2d(3, width, sizes.patch, sizes.patch)
        self.patch_positions = nn.Parameter(0.02 * torch.randn(sizes.cameras * sizes.patches, width))
        self.byte_embedding = nn.Embedding(257, width)
        self.byte_positions = nn.Parameter(0.02 * torch.randn(MAX_BYTES, width))
        self.state_projection = nn.Linear(sizes.state, width)
        self.action_projection = nn.Linear(sizes.action, width)
        self.action_positions = nn.Parameter(0.02 * torch.randn(sizes.horizon, width))
        self.time_embedding = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(VlaBlock(width, sizes.heads) for _ in range(sizes.depth))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, sizes.action))
        for name, count in (("state", sizes.state), ("action", sizes.action)):
            self.register_buffer(f"{name}_mean", torch.zeros(count))
            self.register_buffer(f"{name}_scale", torch.ones(count))

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return (B,) the mean squared error of each sample's velocity, for a batch as in :data:`Arrays`."""
        goal = (batch["action"] - self.action_mean) / self.action_scale
        noise, time = batch["noise"].to(goal.dtype), batch["time"].to(goal.dtype)
        at = noise + time[:, None, None] * (goal - noise)
        found = self.velocity(self.embed_observation(batch), batch["text"] > 0, at, time)
        return (found.to(goal.dtype) - (goal - noise)).square().mean(dim=(1, 2))

    @torch.no_grad()
    def act(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return (B, K, A) actions [rad or m], integrated from ``noise`` along the flow."""
        observed, at = self.embed_observation(batch), batch["noise"]
        for step in range(EULER_STEPS):
            time = torch.full((len(at),), step / EULER_STEPS, dtype=at.dtype)
            at = at + self.velocity(observed, batch["text"] > 0, at, time).to(at.dtype) / EULER_STEPS
        return at * self.action_scale + self.action_mean

    def embed_observation(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return (B, L, D) tokens of images, instruction and joints."""
        kind = self.patch_positions.dtype
        pictures = batch["pictures"]
        patches = self.patch_embedding(pictures.flatten(0, 1).permute(0, 3, 1, 2).to(kind) / 255 - 0.5)
        observed = (
            patches.flatten(2).transpose(1, 2).reshape(len(pictures), len(self.patch_positions), -1)
            + self.patch_positions
        )
        instruction = self.byte_embedding(batch["text"]) + self.byte_positions[: batch["text"].shape[1]]
        joints = self.state_projection((batch["state"] - self.state_mean) / self.state_scale)
        return torch.cat([observed, instruction, joints[:, None]], dim=1)

    def velocity(self, observed: Tensor, is_byte: Tensor, at: Tensor, time: Tensor) -> Tensor:
        """Return (B, K, A) velocity of the flow.

        Args:
            observed: (B, L, D) from :meth:`embed_observation`.
            is_byte: (B, W) False for the padding of instructions.
            at: (B, K, A) scaled actions at ``time``.
            time: (B,) from 0, noise, to 1, actions.
        """
        count, horizon = at.shape[:2]
        moving = (
            self.action_projection(at)
            + self.action_positions
            + self.time_embedding(embed_time(time, self.sizes.width))[:, None]
        )
        tokens = torch.cat([observed, moving.to(observed.dtype)], dim=1)
        is_there = torch.ones(tokens.shape[:2], dtype=torch.bool, device=at.device)
        is_there[:, len(self.patch_positions) : len(self.patch_positions) + is_byte.shape[1]] = is_byte
        if not self.is_packed:
            for block in self.blocks:
                tokens = block(tokens, is_there[:, None, None])
            return self.head(tokens[:, -horizon:])
        lengths = is_there.sum(dim=1)
        packed = tokens[is_there]
        for block in self.blocks:
            packed = block(packed, lengths)
        ends = lengths.cumsum(0)[:, None] - horizon + torch.arange(horizon, device=at.device)
        return self.head(packed[ends.flatten()]).reshape(count, horizon, -1)


class VlaBlock(nn.Module):
    """Layer of the transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.attention_output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feedforward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, which: Tensor) -> Tensor:
        """Tokens (B, L, D) with a mask of keys (B, 1, 1, L), or packed (T, D) with the sequences' lengths (B,)."""
        parts = self.query_key_value(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        query, key, value = parts
        attend = attend_padded if x.ndim == 3 else attend_packed
        x = x + self.attention_output(attend(query, key, value, which).flatten(-2))
        return x + self.feedforward(self.feedforward_norm(x))


def attend_padded(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Return attention (B, L, heads, d) within padded sequences."""
    heads_first = (part.transpose(1, 2) for part in (query, key, value))
    return functional.scaled_dot_product_attention(*heads_first, attn_mask=mask).transpose(1, 2)


def attend_packed(query: Tensor, key: Tensor, value: Tensor, lengths: Tensor) -> Tensor:
    """Return attention (T, heads, d) within concatenated sequences.

    On a CPU, sequence by sequence: the diagonal blocks of the mask, without computing the rest. On a GPU, in half
    precision by PyTorch's variable-length kernel.
    """
    if query.is_cuda and query.dtype in (torch.float16, torch.bfloat16):
        from torch.nn.attention.varlen import varlen_attn

        bounds = functional.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)
        longest = int(lengths.max())
        return varlen_attn(query, key, value, bounds, bounds, longest, longest)  # pyright: ignore
    sizes = lengths.tolist()
    pieces = zip(*(part.transpose(0, 1).split(sizes, dim=1) for part in (query, key, value)), strict=True)
    found = [functional.scaled_dot_product_attention(*(part[None] for part in piece))[0] for piece in pieces]
    return torch.cat(found, dim=1).transpose(0, 1)


def embed_time(time: Tensor, width: int) -> Tensor:
    """Return (B, D) sines and cosines of a time in [0, 1], with periods from 4e-3 to 4."""
    half = width // 2
    rates = 2 * math.pi / torch.logspace(math.log10(4e-3), math.log10(4.0), half, dtype=time.dtype, device=time.device)
    return torch.cat([(time[:, None] * rates).sin(), (time[:, None] * rates).cos()], dim=1)
