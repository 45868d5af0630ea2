"""The 10-bit logarithmic format in which low-latency combine can send rows.

For each 128 channels, the logarithms to base 2 of the smallest and of the largest magnitude (the
smallest at most 32 below the largest) span 511 codes at equal distances; code 0 is zero. A block
with a NaN or an infinity decodes to NaN.
"""

import torch

CHANNELS = 128
MAX_RANGE = 32.0  # octaves
LARGEST_CODE = 511


def round_trip(rows: torch.Tensor) -> torch.Tensor:
    """What the receiver of BF16 rows sees, f32 of the same shape."""
    blocks = rows.to(torch.float64).reshape(-1, CHANNELS)
    magnitude = blocks.abs()
    finite = torch.isfinite(magnitude).all(dim=1, keepdim=True)
    log = torch.log2(magnitude)  # minus infinity for zeros
    top = log.amax(dim=1, keepdim=True)
    bottom = torch.where(magnitude == 0, torch.tensor(float("inf")).double(), log)
    bottom = bottom.amin(dim=1, keepdim=True)
    base = torch.maximum(bottom, top - MAX_RANGE).float().double()
    step = ((top - base).clamp(min=0) / (LARGEST_CODE - 1)).float().double()
    codes = torch.round((log - base) / torch.where(step > 0, step, torch.ones_like(step)))
    value = torch.pow(2.0, base + codes.clamp(0, LARGEST_CODE - 1) * step)
    nearer_to_zero = magnitude < torch.pow(2.0, base) / 2
    value = torch.where(nearer_to_zero, torch.zeros_like(value), value).float()
    value = torch.where(torch.signbit(blocks), -value, value)
    value = torch.where(finite, value, torch.full_like(value, float("nan")))
    return value.reshape(rows.shape)


def relative_error() -> float:
    """The most that a decoded number may be off, relative to it, if it lies within the span."""
    return 2 ** (MAX_RANGE / (LARGEST_CODE - 1) / 2) - 1


def absolute_error(rows: torch.Tensor) -> torch.Tensor:
    """The most that numbers below the span may be off, for each channel of ``rows``, f64."""
    blocks = rows.to(torch.float64).reshape(-1, CHANNELS).abs()
    bound = blocks.amax(dim=1, keepdim=True) * 2.0**-MAX_RANGE
    return bound.expand_as(blocks).reshape(rows.shape)
