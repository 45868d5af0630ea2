"""Writes the golden vectors of the reference: ``python3 -m deepep_reference.generate``.

All randomness is integers of ``random.Random``, which do not depend on PyTorch, so that writing the
files again gives the same bytes.
"""

import sys
from pathlib import Path
from random import Random
from typing import Dict, List, Tuple

import numpy
import torch

from . import fp8, low_latency
from .cases import LOW_LATENCY, NORMAL, Case, dispatched, run, to_content
from .safetensors_file import write

GOLDEN = Path(__file__).parent.parent / "golden" / "pytorch"
INDEX = "index.txt"


HOLES = "holes"  # some selections are -1
REPEATS = "repeats"  # some tokens name an expert twice
UNEVEN = "uneven"  # ranks have different numbers of tokens
EVERYTHING = (HOLES, REPEATS, UNEVEN)


def bf16(random: Random, *shape: int, lowest: int = -10, highest: int = 5) -> torch.Tensor:
    """BF16 numbers of any sign and mantissa, exponents in [lowest, highest]."""
    bits = _bits(random, _count(shape))
    exponent = 127 + lowest + ((bits >> 8 & 0xFF) * (highest - lowest + 1) >> 8)
    return _patterns((bits >> 16 & 1) << 15 | exponent << 7 | bits & 0x7F).view(shape)


def f32(random: Random, *shape: int) -> torch.Tensor:
    """F32 numbers of [-1, 1) with 24 bits."""
    values = (_bits(random, _count(shape)) & 0xFFFFFF).astype(numpy.float32)
    return torch.from_numpy(values / numpy.float32(2**23) - numpy.float32(1)).view(shape)


def _bits(random: Random, count: int) -> numpy.ndarray:
    """Random numbers of 32 bits, in i64."""
    return numpy.frombuffer(random.randbytes(4 * count), dtype="<u4").astype(numpy.int64)


def _patterns(patterns: numpy.ndarray) -> torch.Tensor:
    """The BF16 numbers with these bits."""
    return torch.from_numpy(patterns.astype(numpy.uint16).view(numpy.int16)).view(torch.bfloat16)


def _count(shape) -> int:
    return int(numpy.prod(shape, dtype=numpy.int64))


def routing(random: Random, tokens: int, topk: int, experts: int, irregular) -> torch.Tensor:
    """Distinct experts, except for what ``irregular`` names."""
    rows = []
    for _ in range(tokens):
        row = random.sample(range(experts), topk)
        for k in range(topk):
            chance = random.randrange(8)
            if chance == 0 and REPEATS in irregular:
                row[k] = row[k - 1]
            elif chance <= 2 and HOLES in irregular:
                row[k] = -1
        rows.append(row)
    return torch.tensor(rows, dtype=torch.int64).view(tokens, topk)


def normal_case(
    seed: int,
    ranks: int,
    per_node: int,
    tokens: int,
    hidden: int,
    topk: int,
    experts: int,
    use_fp8: bool = False,
    irregular: Tuple[str, ...] = EVERYTHING,
    alignment: int = 1,
    worst: int = 0,
    expanded: bool = False,
    biases: int = 0,
) -> Case:
    random = Random(seed)
    settings = dict(
        operation=NORMAL,
        num_ranks=ranks,
        ranks_per_node=per_node,
        num_experts=experts,
        num_topk=topk,
        hidden=hidden,
        max_tokens=tokens,
        expert_alignment=alignment,
        num_worst_tokens=worst,
        expanded=str(expanded).lower(),
    )
    inputs = []
    for rank in range(ranks):
        own = 0 if rank == 1 and UNEVEN in irregular else tokens
        given = dict(
            x=bf16(random, own, hidden),
            topk_idx=routing(random, own, topk, experts, irregular),
            topk_weights=f32(random, own, topk),
        )
        if use_fp8:
            given["x"], given["scales"] = fp8.cast_rows(given["x"])
        for bias in range(biases):
            given[f"bias{bias}"] = bf16(random, own, hidden)
        inputs.append(given)
    return _with_expert_output(random, _case(settings, inputs))


def low_latency_case(
    seed: int,
    ranks: int,
    per_node: int,
    tokens: int,
    hidden: int,
    topk: int,
    experts: int,
    row_format: str,
    irregular: Tuple[str, ...] = EVERYTHING,
    logfmt: bool = False,
    pre_reduced: bool = False,
    absent: str = "",
) -> Case:
    random = Random(seed)
    inputs = []
    for rank in range(ranks):
        own = tokens - (rank % 2 if UNEVEN in irregular else 0)
        inputs.append(
            dict(
                x=bf16(random, own, hidden),
                topk_idx=routing(random, own, topk, experts, irregular),
                topk_weights=f32(random, own, topk),
                cumulative_stats=torch.arange(experts // ranks, dtype=torch.int32) + rank,
            )
        )
    settings = _low_latency_settings(ranks, per_node, tokens, hidden, topk, experts, row_format)
    settings.update(
        logfmt=str(logfmt).lower(), pre_reduced=str(pre_reduced).lower(), absent=absent
    )
    return _with_expert_output(random, _case(settings, inputs))


def _low_latency_settings(ranks, per_node, tokens, hidden, topk, experts, row_format) -> Dict:
    return dict(
        operation=LOW_LATENCY,
        num_ranks=ranks,
        ranks_per_node=per_node,
        num_experts=experts,
        num_topk=topk,
        hidden=hidden,
        max_tokens=tokens,
        format=row_format,
        logfmt="false",
        pre_reduced="false",
        absent="",
    )


def casts_case(row_format: str) -> Case:
    """One rank that sends itself the groups in which the casts have something to decide."""
    random = Random(448)
    groups = _hard_groups(random)
    x = torch.cat(groups).view(-1, 4 * fp8.GROUP)
    tokens, hidden = x.shape
    given = dict(
        x=x,
        topk_idx=torch.zeros(tokens, 1, dtype=torch.int64),
        topk_weights=f32(random, tokens, 1),
        cumulative_stats=torch.zeros(1, dtype=torch.int32),
    )
    settings = _low_latency_settings(1, 1, tokens, hidden, 1, 1, row_format)
    return _with_expert_output(random, _case(settings, [given]))


def _hard_groups(random: Random) -> List[torch.Tensor]:
    size = fp8.GROUP
    groups = []
    codes = fp8.decode(torch.arange(0x7F, dtype=torch.uint8))
    ties = torch.cat([(codes[1:] + codes[:-1]) / 2, torch.tensor([448.0, -448.0])])
    for shift in (0, -30, 40):  # halfway between codes: the scale is a power of two
        groups.append((ties * 2.0**shift).to(torch.bfloat16))
    groups.append(torch.zeros(size, dtype=torch.bfloat16))
    groups.append(-torch.zeros(size, dtype=torch.bfloat16))
    for largest in (447.0, 450.0, 1e-4, 9.9e-5, 3.3e38, 1.0, 2.0**-13):
        # In f32: versions of PyTorch differ in whether they round a number before they multiply BF16 by it.
        factor = torch.tensor(largest).to(torch.bfloat16).float()
        group = bf16(random, size, lowest=-12, highest=-1).float() * factor
        group[random.randrange(size)] = factor
        groups.append(group.to(torch.bfloat16))
    groups.append(_patterns(_bits(random, size) & 0x807F))  # subnormal
    for lowest, highest in ((-126, -100), (90, 127), (-40, 40), (-126, 127), (0, 0)):
        groups.append(bf16(random, size, lowest=lowest, highest=highest))
    while len(groups) % 4 != 0:
        groups.append(bf16(random, size))
    return groups


def _case(settings: Dict, inputs) -> Case:
    return Case({name: str(value) for name, value in settings.items()}, inputs)


def _with_expert_output(random: Random, case: Case) -> Case:
    for rank, (given, place) in enumerate(zip(case.inputs, dispatched(case))):
        given["expert_output"] = bf16(random, place.x.shape[0], case.number("hidden"))
    return case


def golden_cases() -> Dict[str, Case]:
    """All cases, by the names of their files."""
    ll = low_latency
    cases = {
        "normal-bf16": normal_case(1, 4, 4, 5, 136, 3, 8, biases=2),
        "normal-fp8": normal_case(2, 8, 8, 2, 256, 4, 16, use_fp8=True, alignment=16),
        "normal-even": normal_case(3, 2, 2, 6, 128, 2, 4, irregular=(), biases=1),
        "normal-worst-case": normal_case(4, 4, 4, 4, 128, 4, 16, worst=16),
        "normal-expanded": normal_case(5, 4, 4, 4, 128, 3, 8, expanded=True, alignment=4),
        "normal-two-nodes": normal_case(6, 4, 2, 5, 136, 4, 8, biases=1),
        "normal-two-nodes-fp8": normal_case(7, 6, 3, 2, 256, 4, 12, use_fp8=True, alignment=8),
        "normal-two-nodes-expanded": normal_case(8, 4, 2, 3, 128, 3, 8, expanded=True, alignment=2),
        "low-latency-bf16": low_latency_case(11, 4, 4, 4, 128, 3, 8, ll.BF16),
        "low-latency-fp8": low_latency_case(12, 4, 4, 3, 384, 3, 8, ll.FP8),
        "low-latency-power-of-two": low_latency_case(13, 2, 2, 4, 256, 2, 6, ll.FP8_POWER_OF_TWO),
        "low-latency-ue8m0": low_latency_case(14, 2, 2, 3, 640, 2, 4, ll.FP8_UE8M0),
        "low-latency-logfmt": low_latency_case(15, 4, 4, 3, 256, 3, 8, ll.FP8, logfmt=True),
        "low-latency-absent": low_latency_case(16, 4, 4, 4, 128, 3, 8, ll.FP8, absent="2"),
        "low-latency-two-nodes": low_latency_case(17, 4, 2, 4, 128, 3, 8, ll.BF16),
        "low-latency-pre-reduced": low_latency_case(
            18, 4, 4, 4, 128, 5, 8, ll.FP8, pre_reduced=True
        ),
        "low-latency-pre-reduced-logfmt": low_latency_case(
            19, 2, 2, 4, 128, 4, 6, ll.BF16, logfmt=True, pre_reduced=True
        ),
    }
    for row_format in (ll.FP8, ll.FP8_POWER_OF_TWO, ll.FP8_UE8M0):
        cases["casts-" + row_format.replace("_", "-")] = casts_case(row_format)
    return cases


def generate(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}.safetensors": case for name, case in golden_cases().items()}
    for name, case in files.items():
        write(folder / name, to_content(case, run(case)))
    (folder / INDEX).write_text("".join(f"{name}\n" for name in sorted(files)))


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN)
