"""FP8 E4M3 ("e4m3fn": no infinities, largest 448) by arithmetic, and the casts of whole rows.

Old releases of PyTorch have no FP8 types, so codes are ``torch.uint8``. Where PyTorch has them, a
test compares the two.
"""

from typing import NamedTuple

import torch

from .powers import exponent_of, two_to

GROUP = 128  # channels that share a scale
LARGEST = 448.0
MIN_AMAX = 1e-4

_MANTISSA_BITS = 3
_BIAS = 7
_MIN_EXPONENT = -6  # of normal numbers; subnormal ones share it
_NAN_CODE = 0x7F


def encode(values: torch.Tensor) -> torch.Tensor:
    """The nearest codes of f32 numbers, ties to even; beyond 448 the largest; NaN stays NaN."""
    is_nan = torch.isnan(values)
    magnitude = torch.where(is_nan, torch.zeros_like(values), values).double().abs()
    magnitude = magnitude.clamp(max=LARGEST)
    exponent = torch.where(magnitude == 0, _MIN_EXPONENT, exponent_of(magnitude))
    exponent = exponent.clamp(min=_MIN_EXPONENT)
    # How many steps of the binade; torch.round takes the even one of two.
    steps = torch.round(magnitude * two_to(_MANTISSA_BITS - exponent)).to(torch.int64)
    # A mantissa that rounds up to the next power of two carries into the exponent by itself.
    code = (exponent + _BIAS) * 2**_MANTISSA_BITS + (steps - 2**_MANTISSA_BITS)
    code = torch.where(is_nan, _NAN_CODE, code)
    return (code + 128 * torch.signbit(values)).to(torch.uint8)


def decode(codes: torch.Tensor) -> torch.Tensor:
    """The f32 values of codes."""
    bits = codes.to(torch.int64)
    field = (bits >> _MANTISSA_BITS) & 15
    mantissa = (bits & 7) + torch.where(field > 0, 8, 0)
    value = (mantissa * two_to(field.clamp(min=1) - _BIAS - _MANTISSA_BITS)).float()
    value = torch.where((bits & 0x7F) == _NAN_CODE, torch.tensor(float("nan")), value)
    return torch.where(bits >= 128, -value, value)


class Cast(NamedTuple):
    codes: torch.Tensor  # u8 [T, H]
    scales: torch.Tensor  # f32 [T, H / 128]


def cast_rows(x: torch.Tensor, round_scale: bool = False) -> Cast:
    """Casts BF16 rows, with a scale for every 128 channels: ``x`` is about ``codes * scales``.

    With amax the largest magnitude of a group, at least 1e-4, scales are ``amax * (1 / 448)`` and
    elements are multiplied by ``448 / amax``, every operation in f32. With ``round_scale`` scales
    are that number rounded up to a power of two, and elements are multiplied by its inverse.
    """
    tokens, hidden = x.shape
    if hidden % GROUP != 0:
        raise ValueError(f"hidden={hidden} is not a multiple of {GROUP}")
    groups = x.float().view(tokens, hidden // GROUP, GROUP)
    if groups.numel() == 0:
        return Cast(torch.zeros(x.shape, dtype=torch.uint8), torch.zeros(tokens, hidden // GROUP))
    amax = groups.abs().amax(dim=2).clamp(min=MIN_AMAX)
    scales = amax * torch.tensor(1.0 / LARGEST)
    # A plain ``448.0 / amax`` is a reciprocal and a product in PyTorch: rounded twice.
    multiplier = torch.div(torch.tensor(LARGEST), amax)
    if round_scale:
        exponent = exponent_of(scales)
        exponent = exponent + (two_to(exponent) < scales)
        scales, multiplier = two_to(exponent).float(), two_to(-exponent).float()
    return Cast(encode(groups * multiplier.unsqueeze(2)).view(tokens, hidden), scales)


def pack_ue8m0(scales: torch.Tensor) -> torch.Tensor:
    """Powers of two as biased exponents, four in an i32, the first lowest: i32 [T, ceil(S / 4)]."""
    exponent = exponent_of(scales)
    if not torch.equal(two_to(exponent).float(), scales):
        raise ValueError("a scale is not a power of two")
    tokens, count = scales.shape
    num_words = (count + 3) // 4
    biased = torch.zeros(tokens, num_words * 4, dtype=torch.int64)
    biased[:, :count] = exponent + 127
    words = (biased.view(tokens, num_words, 4) << torch.tensor([0, 8, 16, 24])).sum(dim=2)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)
