"""Exact powers of two: ``torch.pow`` and ``torch.ldexp`` promise none."""

import torch

_F64_BIAS = 1023
_F64_MANTISSA_BITS = 52


def two_to(exponent: torch.Tensor) -> torch.Tensor:
    """2 to integers in [-1022, 1023], f64."""
    return ((exponent.to(torch.int64) + _F64_BIAS) << _F64_MANTISSA_BITS).view(torch.float64)


def exponent_of(values: torch.Tensor) -> torch.Tensor:
    """For f64 numbers that are not zero, the e with 2^e <= |value| < 2^(e + 1), i64."""
    return torch.frexp(values)[1].to(torch.int64) - 1
