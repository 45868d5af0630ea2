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


def test_pre_reduced_combine_rounds_at_each_rank():
    """One token with two experts at rank 1 and one at rank 0: 256 + 1 is no BF16 number."""
    topk_idx = [torch.tensor([[2, 0, 3]]), torch.empty(0, 3, dtype=torch.int64)]
    x = [torch.ones(1, 128).bfloat16(), torch.empty(0, 128).bfloat16()]
    weights = [torch.tensor([[1.0, 0.5, 1.0]]), torch.empty(0, 3)]
    received = low_latency.dispatch(x, topk_idx, 4, low_latency.BF16)
    outputs = [
        torch.full((1, 128), 2.0).bfloat16(),
        torch.tensor([[256.0], [1.0]]).expand(2, 128).bfloat16(),
    ]
    by_selection = low_latency.combine(received, outputs, topk_idx, weights)
    by_rank = low_latency.combine(received, outputs, topk_idx, weights, pre_reduced=True)
    assert by_selection[0].x[0, 0] == 258  # 256 + 1 + 1, rounded once
    assert by_rank[0].x[0, 0] == 256  # 257 becomes 256 at rank 1, and 256 + 1 too


def test_pre_reduced_terms_are_in_the_order_of_first_selections():
    row = torch.ones(4).bfloat16()
    terms = [low_latency.Term(rank, row, weight) for rank, weight in ((3, 1.0), (1, 2.0), (3, 4.0))]
    sums = low_latency.pre_reduce(terms, 4)
    assert [(term.rank, float(term.output[0]), term.weight) for term in sums] == [
        (3, 5.0, 1.0),
        (1, 2.0, 1.0),
    ]
