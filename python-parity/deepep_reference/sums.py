"""Sums in f32 in a given order, and how far another order of the same sum may be off."""

import torch

from .powers import exponent_of, two_to

_F32_ROUNDING = 2.0**-24
_BF16_MANTISSA_BITS = 8
_BF16_MIN_EXPONENT = -126


class RowSum:
    """The sum of rows for one token: ``acc += weight * row``, product and sum rounded to f32."""

    def __init__(self, width: int):
        self._sum = torch.zeros(width, dtype=torch.float32)
        self._magnitude = torch.zeros(width, dtype=torch.float64)
        self._allowed = torch.zeros(width, dtype=torch.float64)
        self._terms = 0

    def add(self, row: torch.Tensor, weight: float = 1.0) -> None:
        """Adds a row of any float type."""
        weight = torch.tensor(weight, dtype=torch.float32)
        term = row.to(torch.float32) * weight
        self._sum = self._sum + term
        self._magnitude += term.double().abs()
        self._terms += 1

    def allow(self, error: torch.Tensor) -> None:
        """Grants an implementation to be off by so much, f64 for each channel."""
        self._allowed += error

    def allow_bf16_rounding(self, partial: torch.Tensor) -> None:
        """Grants that this partial sum, f32, is rounded to BF16 on its way."""
        self._allowed += _bf16_ulp(partial.double()) / 2

    def bf16(self) -> torch.Tensor:
        return self._sum.to(torch.bfloat16)

    def f32(self) -> torch.Tensor:
        return self._sum

    def bound_of_bf16(self) -> torch.Tensor:
        """How far ``bf16()`` may be from that of another order of summation, f32."""
        before = self._allowed + self._bound_of_f32()
        rounding = _bf16_ulp(self._sum.double().abs() + before)
        return (before + rounding).float() * (1 + 2.0**-20)

    def bound_of_f32(self) -> torch.Tensor:
        """How far ``f32()`` may be from that of another order of summation, f32."""
        return self._bound_of_f32().float() * (1 + 2.0**-20)

    def _bound_of_f32(self) -> torch.Tensor:
        return 2 * (self._terms + 1) * _F32_ROUNDING * self._magnitude


def _bf16_ulp(values: torch.Tensor) -> torch.Tensor:
    """The distance of the BF16 numbers around f64 values."""
    exponent = exponent_of(values).clamp(min=_BF16_MIN_EXPONENT)
    exponent = torch.where(values == 0, _BF16_MIN_EXPONENT, exponent)
    return two_to(exponent - _BF16_MANTISSA_BITS + 1)
