"""DeepEP V2's ``ElasticBuffer`` beside the reference: what V1's ``Buffer`` cannot do.

Expanded: rows grouped by expert and padded. V2 puts a rank's rows of an expert in any order, and its
handle says which slot belongs to which selection (``recv_src_metadata``: the token's number among
those of all ranks, something of its own, then a slot for each selection, -1 for none).

Pre-reduced: V2 leaves it to the caller to sum a token's rows on a rank, and adds the ranks' sums. The
sums are made here as the reference makes them, so that what V2 adds is what this library sends.
"""

from typing import List

import torch

from comparing import Outputs, World, from_codes, on_host, to_codes
from deepep_reference import low_latency
from deepep_reference.cases import LOW_LATENCY, Case, Outcome, dispatched

FIRST_SLOT = 2  # column of recv_src_metadata


def is_elastic(case: Case) -> bool:
    settings = case.settings
    return "true" in (settings.get("expanded"), settings.get("pre_reduced"))


def open_buffer(deep_ep, options, group):
    return deep_ep.ElasticBuffer(
        group,
        num_max_tokens_per_rank=options.tokens,
        hidden=options.hidden,
        num_topk=options.topk,
        explicitly_destroy=True,
    )


def run(buffer, case: Case, world: World, expected: Outcome) -> Outputs:
    """What V2 gives this rank. What it has no word for is taken from ``expected``."""
    call = _pre_reduced if case.settings["operation"] == LOW_LATENCY else _expanded
    outputs = call(buffer, case, world)
    return Outputs({**expected.outputs, **on_host(outputs.named)}, outputs.problems)


def _dispatch(buffer, case: Case, given, **options):
    x = (from_codes(given["x"]), given["scales"]) if "scales" in given else given["x"]
    return buffer.dispatch(
        x,
        topk_idx=given["topk_idx"],
        topk_weights=given["topk_weights"],
        num_experts=case.number("num_experts"),
        num_max_tokens_per_rank=case.number("max_tokens"),
        **options,
    )


def _given(case: Case, world: World):
    inputs = case.inputs[world.group.rank()]
    return {name: tensor.to(world.device) for name, tensor in inputs.items()}


def _expanded(buffer, case: Case, world: World) -> Outputs:
    given = _given(case, world)
    alignment = case.number("expert_alignment")
    recv_x, _, weights, handle, _ = _dispatch(
        buffer, case, given, expert_alignment=alignment, do_expand=True, do_zero_padding=True
    )
    rows, scales = recv_x if isinstance(recv_x, tuple) else (recv_x, None)
    place = dispatched(case)[world.group.rank()]
    slots, problems = _slots(handle, place, case.number("max_tokens"))
    if problems:
        return Outputs({}, problems)
    ends = handle.psum_num_recv_tokens_per_expert.cpu()
    ends = torch.div(ends + alignment - 1, alignment, rounding_mode="floor") * alignment
    slots = slots.to(world.device)
    output = torch.zeros(rows.shape, dtype=torch.bfloat16, device=world.device)
    output[slots] = given["expert_output"]
    named = dict(
        # In the order of the reference, padding included.
        recv_x=to_codes(rows)[slots],
        recv_scales=None if scales is None else scales[slots],
        recv_topk_weights=weights[slots],
        num_recv_tokens_per_expert=torch.tensor(
            handle.num_recv_tokens_per_expert_list, dtype=torch.int32
        ),
        expert_offsets=torch.cat([torch.zeros(1, dtype=torch.int64), ends]).to(torch.int32),
    )
    named["combined_x"], named["combined_topk_weights"], _ = buffer.combine(
        output, handle, topk_weights=weights
    )
    return Outputs(named, [])


def _slots(handle, place, max_tokens: int):
    """For each row of the reference the slot in which V2 has it; its padding goes to V2's padding."""
    metadata = handle.recv_src_metadata.cpu().to(torch.int64)
    row_of = {int(token): row for row, token in enumerate(metadata[:, 0])}
    slots = torch.full((len(place.src_rank),), -1, dtype=torch.int64)
    for row in (place.src_rank >= 0).nonzero().flatten().tolist():
        token = int(place.src_rank[row]) * max_tokens + int(place.src_token[row])
        if token not in row_of:
            return slots, [f"handle: recv_src_metadata does not name token {token}"]
        slots[row] = metadata[row_of[token], FIRST_SLOT + int(place.selection[row])]
    problems: List[str] = []
    for expert in range(len(place.offsets) - 1):
        begin, end = int(place.offsets[expert]), int(place.offsets[expert + 1])
        used = set(slots[begin:end].tolist()) - {-1}
        real = int((place.src_rank[begin:end] >= 0).sum())
        if len(used) < real or not used <= set(range(begin, begin + real)):
            problems.append(f"handle: the slots of expert {expert} have gaps or overlaps")
        padding = torch.arange(begin + real, end)
        slots[begin:end][slots[begin:end] < 0] = padding[: end - begin - real]
    return slots, problems


def _pre_reduced(buffer, case: Case, world: World) -> Outputs:
    given = _given(case, world)
    recv_x, _, _, handle, _ = _dispatch(buffer, case, given)
    rank, max_tokens = world.group.rank(), case.number("max_tokens")
    received = dispatched(case)
    terms = [
        low_latency.terms_of(
            owner,
            received,
            case.given("expert_output"),
            case.inputs[owner]["topk_idx"],
            case.inputs[owner]["topk_weights"],
        )
        for owner in range(world.group.size())
    ]
    tokens = handle.recv_src_metadata[:, 0].cpu().tolist()
    sums = torch.zeros(recv_x.shape, dtype=torch.bfloat16)
    problems: List[str] = []
    for row, number in enumerate(tokens):
        owner, token = divmod(number, max_tokens)
        if not torch.equal(recv_x[row].cpu(), case.inputs[owner]["x"][token]):
            problems.append(f"recv_x: row {row} is not token {token} of rank {owner}")
        mine = [term for term in terms[owner][token] if term.rank == rank]
        sums[row] = low_latency.pre_reduce(mine, sums.shape[1])[0].output
    combined, _, _ = buffer.combine(sums.to(world.device), handle)
    return Outputs(dict(combined_x=combined), problems)
