"""Exchanges small enough to be written down."""

import pytest
import torch

from deepep_reference import fp8, low_latency

# Two ranks with two experts each.
TOPK_IDX = [torch.tensor([[0, 2], [2, -1], [3, 2]]), torch.tensor([[2, 0], [2, 2]])]
X = [
    torch.tensor([[10.0 * rank + token] * 128 for token in range(len(idx))]).bfloat16()
    for rank, idx in enumerate(TOPK_IDX)
]
WEIGHTS = [torch.full(idx.shape, 0.5) for idx in TOPK_IDX]


def test_dispatch():
    second = low_latency.dispatch(X, TOPK_IDX, 4, low_latency.BF16)[1]
    assert second.count.tolist() == [6, 1]
    assert second.x[:, 0].tolist() == [0, 1, 2, 10, 11, 11, 2]
    assert second.src_token.tolist() == [0, 1, 2, 0, 1, 1, 2]
    assert second.range_count.tolist() == [[3, 3], [1, 0]]
    assert second.range_begin.tolist() == [[0, 3], [0, 0]]
    assert second.scales is None


@pytest.mark.parametrize(
    "row_format", [low_latency.FP8, low_latency.FP8_POWER_OF_TWO, low_latency.FP8_UE8M0]
)
def test_rows_travel_as_fp8(row_format):
    first = low_latency.dispatch(X, TOPK_IDX, 4, row_format)[0]
    assert first.src_token.tolist() == [0, 0]
    assert first.x.dtype == torch.uint8
    scales = first.scales.float()
    if row_format == low_latency.FP8_UE8M0:
        assert first.scales.dtype == torch.int32
        scales = torch.pow(2.0, first.scales - 127.0)
    value = fp8.decode(first.x) * scales
    torch.testing.assert_close(value[:, 0], torch.tensor([0.0, 10.0]), rtol=2**-4, atol=0)


def test_combine():
    received = low_latency.dispatch(X, TOPK_IDX, 4, low_latency.BF16)
    home = low_latency.combine(received, [rows.x for rows in received], TOPK_IDX, WEIGHTS)
    # A token comes back once for each selection, each time half.
    assert home[0].x[:, 0].tolist() == [0, 0.5, 2]
    assert home[1].x[:, 0].tolist() == [10, 11]


def test_absent_rank():
    received = low_latency.dispatch(X, TOPK_IDX, 4, low_latency.BF16, absent=[1])
    assert received[1].count.tolist() == [0, 0]
    assert received[0].range_count.tolist() == [[1, 0], [0, 0]]
    home = low_latency.combine(received, [rows.x + 4 for rows in received], TOPK_IDX, WEIGHTS)
    assert home[0].x[:, 0].tolist() == [2, 0, 0]


def test_combine_as_logfmt_is_near():
    generator = torch.Generator().manual_seed(2)
    received = low_latency.dispatch(X, TOPK_IDX, 4, low_latency.BF16)
    outputs = [torch.randn(rows.x.shape, generator=generator).bfloat16() for rows in received]
    exact = low_latency.combine(received, outputs, TOPK_IDX, WEIGHTS)
    near = low_latency.combine(received, outputs, TOPK_IDX, WEIGHTS, use_logfmt=True)
    for a, b in zip(exact, near):
        assert not torch.equal(a.x, b.x)
        assert ((a.x.double() - b.x.double()).abs() <= b.bound.double()).all()
