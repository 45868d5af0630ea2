"""Who gets how many tokens: ``get_dispatch_layout``."""

from typing import NamedTuple, Optional

import torch


class DispatchLayout(NamedTuple):
    num_tokens_per_rank: torch.Tensor  # i32 [R]
    num_tokens_per_rdma_rank: Optional[torch.Tensor]  # i32 [nodes], None for one node
    num_tokens_per_expert: torch.Tensor  # i32 [E]
    is_token_in_rank: torch.Tensor  # bool [T, R]


def ranks_of_selections(topk_idx: torch.Tensor, num_experts: int, num_ranks: int) -> torch.Tensor:
    """The rank that holds each selected expert, i64 [T, K]; -1 for no selection."""
    if num_experts % num_ranks != 0:
        raise ValueError(f"num_experts={num_experts} is not a multiple of num_ranks={num_ranks}")
    if topk_idx.numel() > 0 and not -1 <= topk_idx.min() <= topk_idx.max() < num_experts:
        raise ValueError(f"topk_idx is not in [-1, {num_experts})")
    owner = torch.div(topk_idx, num_experts // num_ranks, rounding_mode="floor")
    return torch.where(topk_idx < 0, torch.full_like(topk_idx, -1), owner)


def get_dispatch_layout(
    topk_idx: torch.Tensor, num_experts: int, num_ranks: int, ranks_per_node: int
) -> DispatchLayout:
    """The layout of one rank's tokens.

    topk_idx: i64 [T, K] global experts, -1 for no selection.
    """
    owner = ranks_of_selections(topk_idx, num_experts, num_ranks)
    in_rank = (owner.unsqueeze(2) == torch.arange(num_ranks)).any(dim=1)
    num_nodes = num_ranks // ranks_per_node
    in_node = in_rank.view(-1, num_nodes, ranks_per_node).any(dim=2)
    selections = torch.bincount(topk_idx[topk_idx >= 0], minlength=num_experts)
    return DispatchLayout(
        in_rank.sum(dim=0, dtype=torch.int32),
        in_node.sum(dim=0, dtype=torch.int32) if num_nodes > 1 else None,
        selections.to(torch.int32),
        in_rank,
    )
