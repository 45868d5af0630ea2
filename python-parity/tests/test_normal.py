"""Exchanges small enough to be written down."""

import pytest
import torch

from deepep_reference import normal
from deepep_reference.layout import get_dispatch_layout

# Two ranks with two experts each. Rank 0 has three tokens, rank 1 has two.
TOPK_IDX = [torch.tensor([[0, 2], [1, -1], [3, 2]]), torch.tensor([[2, 0], [-1, -1]])]
WEIGHTS = [torch.tensor([[1.0, 2], [3, 4], [5, 6]]), torch.tensor([[7.0, 8], [9, 10]])]


def tokens():
    return [
        normal.Tokens(
            torch.tensor([[100.0 * rank + token] * 8 for token in range(len(idx))]).bfloat16(),
            idx,
            weights,
        )
        for rank, (idx, weights) in enumerate(zip(TOPK_IDX, WEIGHTS))
    ]


def test_layout():
    layout = get_dispatch_layout(TOPK_IDX[0], num_experts=4, num_ranks=2, ranks_per_node=2)
    assert layout.num_tokens_per_rank.tolist() == [2, 2]
    assert layout.num_tokens_per_rdma_rank is None
    assert layout.num_tokens_per_expert.tolist() == [1, 1, 2, 1]
    assert layout.is_token_in_rank.tolist() == [[True, True], [True, False], [False, True]]
    nodes = get_dispatch_layout(TOPK_IDX[0], num_experts=4, num_ranks=2, ranks_per_node=1)
    assert nodes.num_tokens_per_rdma_rank.tolist() == [2, 2]


def test_layout_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="num_experts=5 is not a multiple of num_ranks=2"):
        get_dispatch_layout(TOPK_IDX[0], num_experts=5, num_ranks=2, ranks_per_node=2)
    with pytest.raises(ValueError, match=r"not in \[-1, 2\)"):
        get_dispatch_layout(TOPK_IDX[0], num_experts=2, num_ranks=2, ranks_per_node=2)


def test_dispatch():
    first, second = normal.dispatch(tokens(), num_experts=4)
    assert first.x[:, 0].tolist() == [0, 1, 100]
    assert first.topk_idx.tolist() == [[0, -1], [1, -1], [-1, 0]]
    assert first.topk_weights.tolist() == [[1, 0], [3, 0], [0, 8]]
    assert first.counts().tolist() == [2, 1]
    assert first.counts(expert_alignment=4).tolist() == [4, 4]
    assert second.x[:, 0].tolist() == [0, 2, 100]
    assert second.topk_idx.tolist() == [[-1, 0], [1, 0], [0, -1]]
    assert second.src_rank.tolist() == [0, 0, 1]
    assert second.src_token.tolist() == [0, 2, 0]


def test_worst_case():
    second = normal.dispatch(tokens(), num_experts=4)[1]
    padded = normal.pad_to_worst_case(second, 5)
    assert torch.equal(padded.x[:3], second.x)
    assert padded.topk_idx[3:].tolist() == [[-1, -1], [-1, -1]]
    with pytest.raises(ValueError, match="3 rows exceed num_worst_tokens=2"):
        normal.pad_to_worst_case(second, 2)


def test_expanded():
    second = normal.expand(normal.dispatch(tokens(), num_experts=4)[1], expert_alignment=2)
    assert second.offsets.tolist() == [0, 4, 6]
    assert second.x[:, 0].tolist() == [0, 2, 100, 0, 2, 0]
    assert second.topk_weights.tolist() == [2, 6, 7, 0, 5, 0]
    assert second.src_token.tolist() == [0, 2, 0, -1, 2, -1]
    assert second.selection.tolist() == [1, 1, 0, -1, 0, -1]


@pytest.mark.parametrize("expanded", [False, True])
def test_combine(expanded):
    places = normal.dispatch(tokens(), num_experts=4)
    if expanded:
        places = [normal.expand(place) for place in places]
    bias = [[torch.full((len(idx), 8), 1000.0).bfloat16()] for idx in TOPK_IDX]
    home = normal.combine(
        tokens(), places, [p.x for p in places], [p.topk_weights for p in places], bias
    )
    # Tokens come back once from each rank, expanded once from each selection: 1002 or 1004.
    assert home[0].x[:, 0].tolist() == [1000, 1000, 1004 if expanded else 1000]
    assert home[1].x[:, 0].tolist() == [1200, 1000]
    assert home[0].topk_weights.tolist() == [[1, 2], [3, 0], [5, 6]]
    assert home[1].topk_weights.tolist() == [[7, 8], [0, 0]]
    assert home[0].is_exact != expanded


def test_sum_is_in_f32_and_in_order():
    """1 + 2^-9 + 2^-9 loses nothing in f32; each BF16 rounding on the way would."""
    idx = torch.tensor([[0, 1, 2]])
    none = torch.zeros(0, 3, dtype=torch.int64)
    world = [normal.Tokens(torch.zeros(len(i), 8).bfloat16(), i) for i in (idx, none, none)]
    places = normal.dispatch(world, num_experts=3)
    outputs = [torch.full((1, 8), value).bfloat16() for value in (1.0, 2.0**-8, 2.0**-8)]
    home = normal.combine(world, places, outputs)
    assert home[0].x[0, 0].item() == 1 + 2.0**-7
