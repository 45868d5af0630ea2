"""Normal mode: dispatch, the layout grouped by expert, combine."""

from typing import List, NamedTuple, Optional, Sequence

import torch

from .layout import ranks_of_selections
from .sums import RowSum


class Tokens(NamedTuple):
    """What one rank dispatches."""

    x: torch.Tensor  # bf16 [T, H], or E4M3 codes u8 [T, H]
    topk_idx: torch.Tensor  # i64 [T, K], -1 for no selection
    topk_weights: Optional[torch.Tensor] = None  # f32 [T, K]
    scales: Optional[torch.Tensor] = None  # f32 [T, H / 128] with codes


class Received(NamedTuple):
    """What one rank receives: a row for each token that selects one of its experts."""

    x: torch.Tensor  # [N, H], in the order of source rank and token
    scales: Optional[torch.Tensor]  # f32 [N, H / 128]
    topk_idx: torch.Tensor  # i64 [N, K], local expert or -1
    topk_weights: Optional[torch.Tensor]  # f32 [N, K], 0 where topk_idx is -1
    src_rank: torch.Tensor  # i64 [N]
    src_token: torch.Tensor  # i64 [N]
    num_local_experts: int

    def counts(self, expert_alignment: int = 1) -> torch.Tensor:
        """Selections of each local expert, rounded up to the alignment: i32 [El]."""
        selected = self.topk_idx[self.topk_idx >= 0]
        counts = torch.bincount(selected, minlength=self.num_local_experts)
        rounded = torch.div(counts + expert_alignment - 1, expert_alignment, rounding_mode="floor")
        return (rounded * expert_alignment).to(torch.int32)


class Expanded(NamedTuple):
    """Received rows grouped by local expert, a row for each selection, padded with zeros."""

    x: torch.Tensor  # [M, H]
    scales: Optional[torch.Tensor]  # f32 [M, H / 128]
    topk_weights: Optional[torch.Tensor]  # f32 [M]
    offsets: torch.Tensor  # i32 [El + 1]: where each expert's rows begin, and their end
    src_rank: torch.Tensor  # i64 [M], -1 for padding
    src_token: torch.Tensor  # i64 [M], -1 for padding
    selection: torch.Tensor  # i64 [M], -1 for padding


def dispatch(tokens: Sequence[Tokens], num_experts: int) -> List[Received]:
    """Sends every token once to each rank that holds one of its experts."""
    num_ranks = len(tokens)
    num_local = num_experts // num_ranks
    owners = [ranks_of_selections(t.topk_idx, num_experts, num_ranks) for t in tokens]
    received = []
    for rank in range(num_ranks):
        chosen = [(owner == rank).any(dim=1).nonzero().flatten() for owner in owners]
        local = [
            torch.where(owner == rank, t.topk_idx - rank * num_local, -1)[rows]
            for t, owner, rows in zip(tokens, owners, chosen)
        ]
        topk_idx = torch.cat(local)
        weights = _gather([t.topk_weights for t in tokens], chosen)
        received.append(
            Received(
                _gather([t.x for t in tokens], chosen),
                _gather([t.scales for t in tokens], chosen),
                topk_idx,
                None if weights is None else weights.masked_fill(topk_idx < 0, 0),
                torch.cat([torch.full_like(rows, src) for src, rows in enumerate(chosen)]),
                torch.cat(chosen),
                num_local,
            )
        )
    return received


def _gather(tensors: Sequence[Optional[torch.Tensor]], rows: Sequence[torch.Tensor]):
    if any(tensor is None for tensor in tensors):
        return None
    return torch.cat([tensor[chosen] for tensor, chosen in zip(tensors, rows)])


def pad_to_worst_case(received: Received, num_worst_tokens: int) -> Received:
    """The result with a number of rows that does not depend on the routing."""
    missing = num_worst_tokens - received.x.shape[0]
    if missing < 0:
        raise ValueError(f"{received.x.shape[0]} rows exceed num_worst_tokens={num_worst_tokens}")

    def padded(tensor, value):
        if tensor is None:
            return None
        tail = torch.full((missing,) + tensor.shape[1:], value, dtype=tensor.dtype)
        return torch.cat([tensor, tail])

    return received._replace(
        x=padded(received.x, 0),
        scales=padded(received.scales, 0),
        topk_idx=padded(received.topk_idx, -1),
        topk_weights=padded(received.topk_weights, 0),
        src_rank=padded(received.src_rank, -1),
        src_token=padded(received.src_token, -1),
    )


def expand(received: Received, expert_alignment: int = 1) -> Expanded:
    """Groups rows by local expert; within one by source rank, token and selection."""
    counts = received.counts(expert_alignment).to(torch.int64)
    row = torch.full((int(counts.sum()),), -1, dtype=torch.int64)
    selection = row.clone()
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    for expert in range(received.num_local_experts):
        places = (received.topk_idx == expert).nonzero()  # in the order of row and selection
        begin = int(offsets[expert])
        row[begin : begin + len(places)] = places[:, 0]
        selection[begin : begin + len(places)] = places[:, 1]

    def pick(tensor):
        if tensor is None:
            return None
        picked = torch.zeros((len(row),) + tensor.shape[1:], dtype=tensor.dtype)
        picked[row >= 0] = tensor[row[row >= 0]]
        return picked

    weights = None
    if received.topk_weights is not None:
        weights = torch.zeros(len(row))
        real = row >= 0
        weights[real] = received.topk_weights[row[real], selection[real]]
    nowhere = torch.full_like(row, -1)
    return Expanded(
        pick(received.x),
        pick(received.scales),
        weights,
        offsets.to(torch.int32),
        torch.where(row >= 0, pick(received.src_rank), nowhere),
        torch.where(row >= 0, pick(received.src_token), nowhere),
        selection,
    )


class Combined(NamedTuple):
    """What one rank gets back, and how far another order of the same sums may be off."""

    x: torch.Tensor  # bf16 [T, H]
    topk_weights: Optional[torch.Tensor]  # f32 [T, K]
    bound: torch.Tensor  # f32 [T, H]
    weights_bound: Optional[torch.Tensor]  # f32 [T, K]
    is_exact: bool  # whether every bit of x is defined


def combine(
    tokens: Sequence[Tokens],
    places: Sequence,
    outputs: Sequence[torch.Tensor],
    weights: Optional[Sequence[torch.Tensor]] = None,
    biases: Optional[Sequence[Sequence[torch.Tensor]]] = None,
    ranks_per_node: Optional[int] = None,
) -> List[Combined]:
    """Sums, without weights, what the ranks computed for each token.

    In f32 and in the order of ranks, then the biases, rounded once to BF16. On one node and with a
    row per token and rank this defines every bit. Otherwise a rank's or a node's partial sum may
    have been rounded to BF16 on its way, which the bounds admit.

    places: for each rank, the ``Received`` or ``Expanded`` whose rows ``outputs`` has.
    weights: for each rank f32 [N, K] (expanded: [M]), summed alongside.
    biases: for each rank up to two bf16 [T, H].
    """
    return [
        _combine_home(
            owner,
            tokens[owner],
            places,
            outputs,
            weights,
            biases[owner] if biases else [],
            ranks_per_node or len(tokens),
        )
        for owner in range(len(tokens))
    ]


def _combine_home(owner, tokens, places, outputs, weights, biases, ranks_per_node) -> Combined:
    num_tokens, num_topk = tokens.topk_idx.shape
    hidden = outputs[0].shape[1]
    expanded = isinstance(places[0], Expanded)
    x = torch.zeros(num_tokens, hidden, dtype=torch.bfloat16)
    bound = torch.zeros(num_tokens, hidden)
    sums = torch.zeros(num_tokens, num_topk)
    sums_bound = torch.zeros(num_tokens, num_topk)
    for token in range(num_tokens):
        total = RowSum(hidden)
        weight_total = RowSum(num_topk)
        for first in range(0, len(places), ranks_per_node):
            node = RowSum(hidden)
            for rank in range(first, first + ranks_per_node):
                place = places[rank]
                rows = ((place.src_rank == owner) & (place.src_token == token)).nonzero().flatten()
                partial = RowSum(hidden)
                for row in rows:
                    for accumulator in (total, node, partial):
                        accumulator.add(outputs[rank][row])
                if expanded:
                    total.allow_bf16_rounding(partial.f32())
                if weights is not None and len(rows) > 0:
                    weight_total.add(_weights_of(place, weights[rank], rows, num_topk))
            total.allow_bf16_rounding(node.f32())
        for bias in biases:
            total.add(bias[token])
        x[token] = total.bf16()
        bound[token] = total.bound_of_bf16()
        sums[token] = weight_total.f32()
        sums_bound[token] = weight_total.bound_of_f32()
    has_weights = weights is not None
    return Combined(
        x,
        sums if has_weights else None,
        bound,
        sums_bound if has_weights else None,
        ranks_per_node == len(places) and not expanded,
    )


def _weights_of(place, weights, rows, num_topk):
    if isinstance(place, Expanded):
        one = torch.zeros(num_topk)
        one[place.selection[rows]] = weights[rows]
        return one
    return weights[rows[0]]
