"""Low-latency mode: dispatch with its FP8 casts, combine with its LogFMT, masks."""

from typing import Collection, Dict, List, NamedTuple, Optional, Sequence

import torch

from . import fp8, logfmt
from .layout import ranks_of_selections
from .sums import RowSum

BF16 = "bf16"
FP8 = "fp8"
FP8_POWER_OF_TWO = "fp8_power_of_two"
FP8_UE8M0 = "fp8_ue8m0"


class Received(NamedTuple):
    """What one rank receives: a row for each selection of one of its experts.

    The rows of expert 0 come first, then those of expert 1, and so on; within an expert by source
    rank, token and selection. (A ``Buffer`` returns [El, R * max_tokens, H], of which these are
    the rows that are defined.)
    """

    x: torch.Tensor  # bf16 [S, H], or E4M3 codes u8 [S, H]
    scales: Optional[torch.Tensor]  # f32 [S, H / 128], or packed UE8M0 i32 [S, ceil(H / 512)]
    count: torch.Tensor  # i32 [El]
    src_token: torch.Tensor  # i32 [S]
    range_count: torch.Tensor  # i32 [El, R]: rows of an expert from a source rank
    range_begin: torch.Tensor  # i32 [El, R]: their first row in the expert; 0 where there is none
    src_rank: torch.Tensor  # i64 [S]
    selection: torch.Tensor  # i64 [S]


def cast(x: torch.Tensor, row_format: str):
    """What travels of BF16 rows: rows and scales."""
    if row_format == BF16:
        return x, None
    rows = fp8.cast_rows(x, round_scale=row_format != FP8)
    return rows.codes, fp8.pack_ue8m0(rows.scales) if row_format == FP8_UE8M0 else rows.scales


def dispatch(
    x: Sequence[torch.Tensor],
    topk_idx: Sequence[torch.Tensor],
    num_experts: int,
    row_format: str = FP8,
    absent: Collection[int] = (),
) -> List[Received]:
    """Sends every token to each of its experts.

    absent: ranks that all others have masked; what they would send or receive does not exist, and
        their own result has no rows.
    """
    num_ranks = len(x)
    num_local = num_experts // num_ranks
    for indices in topk_idx:
        ranks_of_selections(indices, num_experts, num_ranks)  # refuses what is out of range
    sent = [cast(rows, row_format) for rows in x]
    received = []
    for rank in range(num_ranks):
        src_rank, src_token, selection = [], [], []
        range_count = torch.zeros(num_local, num_ranks, dtype=torch.int32)
        for expert in range(num_local):
            for src in range(num_ranks):
                places = (topk_idx[src] == rank * num_local + expert).nonzero()
                if src in absent or rank in absent:
                    places = places[:0]
                range_count[expert, src] = len(places)
                src_rank.append(torch.full((len(places),), src))
                src_token.append(places[:, 0])
                selection.append(places[:, 1])
        src_rank, src_token = torch.cat(src_rank), torch.cat(src_token)
        begin = (range_count.cumsum(1) - range_count).to(torch.int32)
        received.append(
            Received(
                _rows([rows for rows, _ in sent], src_rank, src_token),
                None if row_format == BF16 else _rows([s for _, s in sent], src_rank, src_token),
                range_count.sum(dim=1, dtype=torch.int32),
                src_token.to(torch.int32),
                range_count,
                begin.masked_fill(range_count == 0, 0),
                src_rank,
                torch.cat(selection),
            )
        )
    return received


def _rows(tensors, src_rank, src_token):
    rows = torch.zeros((len(src_rank),) + tensors[0].shape[1:], dtype=tensors[0].dtype)
    for src, tensor in enumerate(tensors):
        mine = src_rank == src
        rows[mine] = tensor[src_token[mine]]
    return rows


class Combined(NamedTuple):
    """What one rank gets back, and how far other arithmetic for the same may be off."""

    x: torch.Tensor  # bf16 [T, H]
    bound: torch.Tensor  # f32 [T, H]


def combine(
    received: Sequence[Received],
    outputs: Sequence[torch.Tensor],
    topk_idx: Sequence[torch.Tensor],
    topk_weights: Sequence[torch.Tensor],
    use_logfmt: bool = False,
    pre_reduced: bool = False,
) -> List[Combined]:
    """Sums, each times its weight, what the experts computed for each token.

    In f32, in the order of the token's selections, products rounded before they are added, rounded
    once to BF16: with BF16 rows this defines every bit. With LogFMT it does not, for the nearest
    code of a number may be another one where logarithms are rounded differently.

    pre_reduced: each rank first sums, in the same way, the rows of a token that its own experts
        computed, and rounds the sum to BF16. The owner adds these without weights, in the order of
        each rank's first selection.
    outputs: for each rank bf16 [S, H] in the order of ``received``.
    """
    return [
        _combine_home(
            terms_of(owner, received, outputs, topk_idx[owner], topk_weights[owner]),
            topk_idx[owner].shape[0],
            outputs[0].shape[1],
            use_logfmt,
            pre_reduced,
        )
        for owner in range(len(received))
    ]


class Term(NamedTuple):
    """What one selection of a token adds to its sum."""

    rank: int  # that holds the expert
    output: torch.Tensor  # bf16 [H]
    weight: float


def terms_of(owner, received, outputs, topk_idx, topk_weights) -> Dict[int, List[Term]]:
    """By token of a rank, what its selections add, in their order."""
    place_of = {}  # (token, selection) -> rank and row there
    for rank, rows in enumerate(received):
        for row in (rows.src_rank == owner).nonzero().flatten().tolist():
            place_of[int(rows.src_token[row]), int(rows.selection[row])] = rank, row
    terms: Dict[int, List[Term]] = {}
    for token, selection in sorted(place_of):
        rank, row = place_of[token, selection]
        weight = float(topk_weights[token, selection])
        terms.setdefault(token, []).append(Term(rank, outputs[rank][row], weight))
    return terms


def pre_reduce(terms: Sequence[Term], hidden: int) -> List[Term]:
    """The sums of each rank, as terms without weights, in the order of its first selection."""
    partials: Dict[int, RowSum] = {}
    for term in terms:
        partials.setdefault(term.rank, RowSum(hidden)).add(term.output, term.weight)
    return [Term(rank, partial.bf16(), 1.0) for rank, partial in partials.items()]


def _combine_home(terms, num_tokens, hidden, use_logfmt, pre_reduced) -> Combined:
    x = torch.zeros(num_tokens, hidden, dtype=torch.bfloat16)
    bound = torch.zeros(num_tokens, hidden)
    for token in range(num_tokens):
        of_token = terms.get(token, [])
        total = RowSum(hidden)
        for term in pre_reduce(of_token, hidden) if pre_reduced else of_token:
            output = term.output
            if use_logfmt:
                # Twice, because both sides may be off by that much.
                error = output.double().abs() * logfmt.relative_error()
                total.allow(2 * abs(term.weight) * (error + logfmt.absolute_error(output)))
                output = logfmt.round_trip(output)
            total.add(output, term.weight)
        x[token] = total.bf16()
        bound[token] = total.bound_of_bf16()
    return Combined(x, bound)
