"""Sends the same inputs through DeepEP and through the reference, and compares what comes out.

Needs a host with GPUs, PyTorch with CUDA, and ``deep_ep`` (1.2, or 2 with its legacy ``Buffer``, whose
``ElasticBuffer`` is then compared too, see ``compare_elastic.py``):

    torchrun --nproc-per-node 8 compare_deep_ep.py --save vectors

Every rank prints what differs, rank 0 a line for each case; the exit status is 0 if nothing
differs. With ``--save`` the inputs, and what DeepEP made of them, become vector files, which the
JVM's buffers are then compared with (README.md, "With DeepEP").

Bit for bit: layouts, counts, received rows, scales, indices and weights, what handles say of rows,
and sums that both define alike. Within bounds: sums with biases, which DeepEP adds first; weighted
ones, which it computes with fused operations; those of several nodes; LogFMT.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Dict, List

import torch
import torch.distributed

import compare_elastic
from comparing import Outputs, World, from_codes, on_host, to_codes
from deepep_reference import generate, low_latency
from deepep_reference.cases import LOW_LATENCY, Case, Outcome, differences, dispatched, run, to_content
from deepep_reference.safetensors_file import write

NVL_BYTES = 2 << 30
RDMA_BYTES = 1 << 30


def make_cases(options, num_ranks: int, ranks_per_node: int) -> Dict[str, Case]:
    """The cases by name. No repeated experts and no idle ranks: DeepEP says nothing of them."""
    shape = (
        num_ranks,
        ranks_per_node,
        options.tokens,
        options.hidden,
        options.topk,
        options.experts,
    )
    holes = dict(irregular=(generate.HOLES,))
    ll = low_latency
    cases = {
        "normal-bf16": generate.normal_case(1, *shape, **holes),
        "normal-bf16-bias": generate.normal_case(2, *shape, biases=2, **holes),
        "normal-fp8-aligned": generate.normal_case(3, *shape, use_fp8=True, alignment=128, **holes),
        "low-latency-bf16": generate.low_latency_case(4, *shape, ll.BF16, **holes),
        "low-latency-fp8": generate.low_latency_case(5, *shape, ll.FP8, **holes),
        "low-latency-power-of-two": generate.low_latency_case(
            6, *shape, ll.FP8_POWER_OF_TWO, **holes
        ),
        "low-latency-ue8m0": generate.low_latency_case(7, *shape, ll.FP8_UE8M0, **holes),
        "low-latency-logfmt": generate.low_latency_case(8, *shape, ll.BF16, logfmt=True, **holes),
    }
    cases.update(elastic_cases(shape, holes))
    if ranks_per_node == num_ranks:  # DeepEP has worst-case mode on one node only
        cases["normal-worst-case"] = generate.normal_case(
            9, *shape, worst=num_ranks * options.tokens, **holes
        )
    return {name: case for name, case in cases.items() if options.only in name}


def elastic_cases(shape, holes) -> Dict[str, Case]:
    """Those of V2's buffer."""
    return {
        "v2-expanded-bf16": generate.normal_case(10, *shape, expanded=True, **holes),
        "v2-expanded-fp8-aligned": generate.normal_case(
            11, *shape, use_fp8=True, expanded=True, alignment=128, **holes
        ),
        "v2-pre-reduced": generate.low_latency_case(
            12, *shape, low_latency.BF16, pre_reduced=True, **holes
        ),
    }


def expected_of(case: Case) -> List[Outcome]:
    return run(case, strict=False)


def deep_ep_normal(buffer, case: Case, world: World) -> Outputs:
    rank = world.group.rank()
    given = {name: tensor.to(world.device) for name, tensor in case.inputs[rank].items()}
    num_experts = case.number("num_experts")
    layout = buffer.get_dispatch_layout(given["topk_idx"], num_experts)
    per_rank, per_node, per_expert, in_rank, _ = layout
    x = (from_codes(given["x"]), given["scales"]) if "scales" in given else given["x"]
    worst = case.number("num_worst_tokens")
    recv_x, recv_idx, recv_weights, counts, handle, _ = buffer.dispatch(
        x,
        num_tokens_per_rank=per_rank,
        num_tokens_per_rdma_rank=per_node,
        is_token_in_rank=in_rank,
        num_tokens_per_expert=per_expert,
        topk_idx=given["topk_idx"],
        topk_weights=given["topk_weights"],
        expert_alignment=case.number("expert_alignment"),
        num_worst_tokens=worst,
    )
    rows, scales = recv_x if isinstance(recv_x, tuple) else (recv_x, None)
    received = dispatched(case)[rank]
    num_rows = received.x.shape[0]
    named = dict(
        num_tokens_per_rank=per_rank,
        num_tokens_per_rdma_rank=per_node,
        num_tokens_per_expert=per_expert,
        is_token_in_rank=in_rank,
        recv_x=to_codes(rows)[:num_rows],
        recv_scales=None if scales is None else scales[:num_rows],
        recv_topk_idx=recv_idx.to(torch.int64),
        recv_topk_weights=recv_weights[:num_rows],
    )
    problems = []
    if worst > 0:
        # DeepEP gives no counts then; they are those of the indices.
        named["num_recv_tokens_per_expert"] = received.counts(case.number("expert_alignment"))
    else:
        named["num_recv_tokens_per_expert"] = torch.tensor(counts, dtype=torch.int32)
        problems += cached_dispatch_problems(buffer, x, handle, rows)
    if world.ranks_per_node == world.group.size():
        problems += handle_problems(handle, rank, received)
    output = given["expert_output"]
    if worst > 0:
        unused = torch.zeros(worst - num_rows, output.shape[1], dtype=output.dtype)
        output = torch.cat([output, unused.to(world.device)])
    biases = tuple(given[name] for name in ("bias0", "bias1") if name in given)
    named["combined_x"], named["combined_topk_weights"], _ = buffer.combine(
        output, handle, topk_weights=recv_weights, bias=biases or None
    )
    return Outputs(on_host(named), problems)


def cached_dispatch_problems(buffer, x, handle, rows) -> List[str]:
    again = buffer.dispatch(x, handle=handle)[0]
    again = again[0] if isinstance(again, tuple) else again
    same = torch.equal(to_codes(again), to_codes(rows))
    return [] if same else ["the cached dispatch gave other rows than the first"]


def handle_problems(handle, rank: int, received) -> List[str]:
    """On one node, a handle says whose rows are whose: rank_prefix_matrix and recv_src_idx."""
    prefix, src_idx = handle[0].cpu(), handle[3].cpu()
    counts = torch.bincount(received.src_rank, minlength=prefix.shape[0])
    problems = []
    if not torch.equal(prefix[:, rank].to(torch.int64), counts.cumsum(0)):
        problems.append("handle: rank_prefix_matrix does not sum the rows of each source")
    if not torch.equal(src_idx[: len(received.src_token)].to(torch.int64), received.src_token):
        problems.append("handle: recv_src_idx does not name the tokens of the rows")
    return problems


def deep_ep_low_latency(buffer, case: Case, world: World) -> Outputs:
    rank = world.group.rank()
    given = {name: tensor.to(world.device) for name, tensor in case.inputs[rank].items()}
    row_format = case.settings["format"]
    stats = given["cumulative_stats"].clone()
    recv_x, count, handle, _, _ = buffer.low_latency_dispatch(
        given["x"],
        given["topk_idx"],
        case.number("max_tokens"),
        case.number("num_experts"),
        cumulative_local_expert_recv_stats=stats,
        use_fp8=row_format != low_latency.BF16,
        round_scale=row_format in (low_latency.FP8_POWER_OF_TWO, low_latency.FP8_UE8M0),
        use_ue8m0=row_format == low_latency.FP8_UE8M0,
    )
    rows, scales = recv_x if isinstance(recv_x, tuple) else (recv_x, None)
    order = RowOrder(count.cpu(), handle[0].cpu(), handle[1].cpu())
    named = dict(
        recv_x=order.packed(to_codes(rows)),
        recv_scales=None if scales is None else order.packed(scales),
        recv_count=count,
        src_info=order.packed(handle[0]),
        range_count=order.range_count,
        range_begin=order.range_begin(),
        cumulative_stats=stats,
    )
    output = torch.full(rows.shape, float("nan"), dtype=torch.bfloat16, device=world.device)
    order.unpack(given["expert_output"], output)
    named["combined_x"], _, _ = buffer.low_latency_combine(
        output,
        given["topk_idx"],
        given["topk_weights"],
        handle,
        use_logfmt=case.flag("logfmt"),
    )
    return Outputs(on_host(named), order.problems)


class RowOrder:
    """Where DeepEP put the rows that the reference has by expert, source rank and token.

    Sources come in the order in which they arrived, and the tokens of one in any order; the handle
    says what is where: ``layout_range`` has the first row in its upper and the number of rows in
    its lower half.
    """

    def __init__(self, count: torch.Tensor, src_info: torch.Tensor, layout_range: torch.Tensor):
        self.range_count = (layout_range & 0xFFFFFFFF).to(torch.int32)
        self.problems: List[str] = []
        self._rows = []  # for each expert, the place of each row
        begins = layout_range >> 32
        for expert, number in enumerate(count.tolist()):
            places = []
            for src, from_src in enumerate(self.range_count[expert].tolist()):
                begin = int(begins[expert, src])
                tokens = src_info[expert, begin : begin + from_src]
                by_token = torch.sort(tokens, stable=True)[1]
                places.append(begin + by_token)
            rows = torch.cat(places)
            if not torch.equal(rows.sort()[0], torch.arange(number)):
                self.problems.append(f"handle: layout_range of expert {expert} has gaps or overlaps")
            self._rows.append(rows)

    def packed(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.cat([tensor[expert][rows] for expert, rows in enumerate(self._rows)])

    def unpack(self, packed: torch.Tensor, to: torch.Tensor) -> None:
        first = 0
        for expert, rows in enumerate(self._rows):
            to[expert][rows] = packed[first : first + len(rows)]
            first += len(rows)

    def range_begin(self) -> torch.Tensor:
        begin = (self.range_count.cumsum(1) - self.range_count).to(torch.int32)
        return begin.masked_fill(self.range_count == 0, 0)


def compare(buffer, case: Case, world: World):
    """What DeepEP gave this rank, and what is wrong with it."""
    expected = expected_of(case)[world.group.rank()]
    if compare_elastic.is_elastic(case):
        outputs = compare_elastic.run(buffer, case, world, expected)
    elif is_low_latency(case):
        outputs = deep_ep_low_latency(buffer, case, world)
    else:
        outputs = deep_ep_normal(buffer, case, world)
    return outputs.named, outputs.problems + differences(expected, outputs.named)


def save(folder: Path, name: str, case: Case, gathered: List[Dict[str, torch.Tensor]]) -> None:
    """A vector file of what DeepEP made of a case."""
    # Both DeepEP and the reader may be off by the bound, to opposite sides.
    outcomes = [
        Outcome(outputs, {name: 2 * bound for name, bound in expected.bounds.items()})
        for outputs, expected in zip(gathered, expected_of(case))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / f"{name}.safetensors", to_content(case, outcomes))


NORMAL_BUFFER, LOW_LATENCY_BUFFER, ELASTIC_BUFFER = "normal", "low latency", "elastic"


def kind_of_buffer(case: Case) -> str:
    """One for each mode, because normal calls would dirty the memory of low-latency ones."""
    if compare_elastic.is_elastic(case):
        return ELASTIC_BUFFER
    return LOW_LATENCY_BUFFER if is_low_latency(case) else NORMAL_BUFFER


def open_buffer(deep_ep, options, group, kind: str):
    if kind == ELASTIC_BUFFER:
        return compare_elastic.open_buffer(deep_ep, options, group)
    if kind == NORMAL_BUFFER:
        several_nodes = options.ranks_per_node < group.size()
        rdma_bytes = RDMA_BYTES if several_nodes else 0
        return deep_ep.Buffer(group, NVL_BYTES, rdma_bytes, explicitly_destroy=True)
    hint = deep_ep.Buffer.get_low_latency_rdma_size_hint(
        options.tokens, options.hidden, group.size(), options.experts
    )
    return deep_ep.Buffer(
        group,
        0,
        hint,
        low_latency_mode=True,
        num_qps_per_rank=options.experts // group.size(),
        explicitly_destroy=True,
    )


def is_low_latency(case: Case) -> bool:
    return case.settings["operation"] == LOW_LATENCY


def compare_with_others(buffer, name: str, case: Case, world: World, folder) -> bool:
    """Compares on every rank, prints, saves; returns whether all ranks found it the same."""
    rank, size = world.group.rank(), world.group.size()
    named, problems = compare(buffer, case, world)
    for problem in problems:
        print(f"{name}: rank {rank}: {problem}", flush=True)
    gathered = [None] * size
    torch.distributed.all_gather_object(gathered, (named, bool(problems)))
    wrong = sum(has_problems for _, has_problems in gathered)
    if rank == 0:
        print(f"{name}: {f'{wrong} ranks differ' if wrong else 'the same'}", flush=True)
        if folder:
            save(folder, name, case, [outputs for outputs, _ in gathered])
    return wrong == 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=7168)
    parser.add_argument("--topk", type=int, default=8)
    parser.add_argument("--experts", type=int, default=256)
    parser.add_argument("--ranks-per-node", type=int, help="all ranks, unless said otherwise")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--save", type=Path, help="a folder for vector files")
    parser.add_argument("--module", default="deep_ep", help="what implements deep_ep")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu for a stand-in")
    parser.add_argument("--rendezvous", default="env://", help="of torch.distributed")
    return parser.parse_args(arguments)


def main(arguments=None) -> int:
    options = parse(arguments)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if options.device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    torch.distributed.init_process_group(
        "nccl" if options.device == "cuda" else "gloo",
        init_method=options.rendezvous,
        rank=rank,
        world_size=size,
    )
    group = torch.distributed.group.WORLD
    options.ranks_per_node = options.ranks_per_node or size
    world = World(group, options.ranks_per_node, options.device)
    deep_ep = importlib.import_module(options.module)
    cases = make_cases(options, size, options.ranks_per_node)
    failed = 0
    for kind in (NORMAL_BUFFER, LOW_LATENCY_BUFFER, ELASTIC_BUFFER):
        chosen = {name: case for name, case in cases.items() if kind_of_buffer(case) == kind}
        if chosen and kind == ELASTIC_BUFFER and not hasattr(deep_ep, "ElasticBuffer"):
            print(f"left out: {', '.join(chosen)}: this {options.module} has no ElasticBuffer")
        elif chosen:
            buffer = open_buffer(deep_ep, options, group, kind)
            for name, case in chosen.items():
                failed += not compare_with_others(buffer, name, case, world, options.save)
            buffer.destroy()
    torch.distributed.destroy_process_group()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
