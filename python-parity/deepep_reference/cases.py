"""A case: the inputs of one exchange and what must come of them; the content of a vector file.

The names of tensors and metadata are described in README.md, "Vector files".
"""

from typing import Dict, List, NamedTuple, Optional

import torch

from . import low_latency, normal
from .layout import get_dispatch_layout
from .safetensors_file import Content

NORMAL = "normal"
LOW_LATENCY = "low_latency"


class Case(NamedTuple):
    settings: Dict[str, str]
    inputs: List[Dict[str, torch.Tensor]]  # by rank

    def number(self, name: str) -> int:
        return int(self.settings[name])

    def flag(self, name: str) -> bool:
        return self.settings[name] == "true"

    def given(self, name: str) -> List[Optional[torch.Tensor]]:
        return [inputs.get(name) for inputs in self.inputs]

    def absent(self) -> List[int]:
        return [int(rank) for rank in self.settings["absent"].split(",") if rank]


class Outcome(NamedTuple):
    """What one rank gets, and for sums that are not defined bit for bit how far off they may be."""

    outputs: Dict[str, torch.Tensor]
    bounds: Dict[str, torch.Tensor]


def run(case: Case, strict: bool = True) -> List[Outcome]:
    """What the reference makes of a case.

    strict: whether sums must have the bits that this project defines. DeepEP defines others: it
        adds biases first, and fuses the products of low-latency combine with their sums. Without
        ``strict`` there are bounds for these, too.
    """
    run_operation = {NORMAL: _run_normal, LOW_LATENCY: _run_low_latency}
    return run_operation[case.settings["operation"]](case, strict)


def dispatched(case: Case):
    """The rows that each rank has after the dispatch, in the order of its ``expert_output``."""
    if case.settings["operation"] == LOW_LATENCY:
        return low_latency.dispatch(
            case.given("x"),
            case.given("topk_idx"),
            case.number("num_experts"),
            case.settings["format"],
            case.absent(),
        )
    received = normal.dispatch(_tokens(case), case.number("num_experts"))
    if case.flag("expanded"):
        return [normal.expand(rows, case.number("expert_alignment")) for rows in received]
    return received


def _tokens(case: Case) -> List[normal.Tokens]:
    return [
        normal.Tokens(i["x"], i["topk_idx"], i.get("topk_weights"), i.get("scales"))
        for i in case.inputs
    ]


def _run_normal(case: Case, strict: bool) -> List[Outcome]:
    tokens = _tokens(case)
    received = normal.dispatch(tokens, case.number("num_experts"))
    places = dispatched(case)
    has_weights = tokens[0].topk_weights is not None
    biases = [[i[name] for name in ("bias0", "bias1") if name in i] for i in case.inputs]
    combined = normal.combine(
        tokens,
        places,
        case.given("expert_output"),
        [place.topk_weights for place in places] if has_weights else None,
        biases,
        case.number("ranks_per_node"),
    )
    outcomes = []
    for rank, home in enumerate(combined):
        layout = get_dispatch_layout(
            tokens[rank].topk_idx,
            case.number("num_experts"),
            case.number("num_ranks"),
            case.number("ranks_per_node"),
        )
        outputs = layout._asdict()
        outputs.update(_received_by(case, received[rank], places[rank]))
        outputs.update(combined_x=home.x, combined_topk_weights=home.topk_weights)
        bounds = {}
        if not home.is_exact or (biases[rank] and not strict):
            bounds["combined_x"] = home.bound
        if case.number("ranks_per_node") < case.number("num_ranks"):
            bounds["combined_topk_weights"] = home.weights_bound
        outcomes.append(Outcome(_present(outputs), _present(bounds)))
    return outcomes


def _received_by(case: Case, received: normal.Received, place) -> Dict[str, torch.Tensor]:
    outputs = dict(
        recv_x=place.x,
        recv_scales=place.scales,
        recv_topk_weights=place.topk_weights,
        num_recv_tokens_per_expert=received.counts(case.number("expert_alignment")),
    )
    if case.flag("expanded"):
        outputs["expert_offsets"] = place.offsets
    elif case.number("num_worst_tokens") > 0:
        padded = normal.pad_to_worst_case(received, case.number("num_worst_tokens"))
        outputs["recv_topk_idx"] = padded.topk_idx
    else:
        outputs["recv_topk_idx"] = received.topk_idx
    return outputs


def _run_low_latency(case: Case, strict: bool) -> List[Outcome]:
    received = dispatched(case)
    combined = low_latency.combine(
        received,
        case.given("expert_output"),
        case.given("topk_idx"),
        case.given("topk_weights"),
        case.flag("logfmt"),
        case.flag("pre_reduced"),
    )
    outcomes = []
    for rank, (rows, home) in enumerate(zip(received, combined)):
        if rank in case.absent():
            outcomes.append(Outcome({}, {}))
            continue
        outputs = dict(
            recv_x=rows.x,
            recv_scales=rows.scales,
            recv_count=rows.count,
            src_info=rows.src_token,
            range_count=rows.range_count,
            range_begin=rows.range_begin,
            cumulative_stats=case.inputs[rank]["cumulative_stats"] + rows.count,
            combined_x=home.x,
        )
        bounds = {} if strict and not case.flag("logfmt") else dict(combined_x=home.bound)
        outcomes.append(Outcome(_present(outputs), _present(bounds)))
    return outcomes


def _present(tensors):
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def to_content(case: Case, outcomes: List[Outcome]) -> Content:
    tensors = {}
    for rank, (inputs, outcome) in enumerate(zip(case.inputs, outcomes)):
        kinds = dict(input=inputs, output=outcome.outputs, bound=outcome.bounds)
        for kind, named in kinds.items():
            tensors.update({f"rank{rank}/{kind}/{name}": t for name, t in named.items()})
    return Content(tensors, case.settings)


def from_content(content: Content):
    """The case of a file and the outcomes it claims."""
    num_ranks = int(content.metadata["num_ranks"])
    inputs = [{} for _ in range(num_ranks)]
    outcomes = [Outcome({}, {}) for _ in range(num_ranks)]
    for path, tensor in content.tensors.items():
        rank, kind, name = path.split("/")
        rank = int(rank[len("rank") :])
        kinds = dict(input=inputs[rank], output=outcomes[rank].outputs, bound=outcomes[rank].bounds)
        kinds[kind][name] = tensor
    return Case(content.metadata, inputs), outcomes


def differences(expected: Outcome, outputs: Dict[str, torch.Tensor]) -> List[str]:
    """What is wrong with one rank's outputs: bits, or distances where there are bounds."""
    if set(expected.outputs) != set(outputs):
        return [f"outputs are {sorted(outputs)}, expected {sorted(expected.outputs)}"]
    found = []
    for name, tensor in sorted(expected.outputs.items()):
        difference = _difference(tensor, outputs[name], expected.bounds.get(name))
        if difference:
            found.append(f"{name}: {difference}")
    return found


def _difference(expected, actual, bound) -> Optional[str]:
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return (
            f"is {actual.dtype}{list(actual.shape)}, expected "
            f"{expected.dtype}{list(expected.shape)}"
        )
    if bound is not None:
        distance = (expected.double() - actual.double()).abs()
        wrong = ~(distance <= bound.double())
    else:
        wrong = _bits(expected) != _bits(actual)
    if not wrong.any():
        return None
    first = tuple(wrong.nonzero()[0].tolist())
    allowed = "" if bound is None else f" ± {bound[first].item()}"
    return (
        f"{int(wrong.sum())} of {wrong.numel()} elements differ, the first at {list(first)}: "
        f"{actual[first].item()}, expected {expected[first].item()}{allowed}"
    )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    views = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
    return tensor.contiguous().view(views.get(tensor.dtype, tensor.dtype))
