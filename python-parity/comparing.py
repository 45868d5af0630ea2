"""What comparisons with either of DeepEP's buffers share."""

from typing import Dict, List, NamedTuple

import torch


class World(NamedTuple):
    """Where a comparison runs."""

    group: object  # rank() and size(), as torch.distributed.ProcessGroup
    ranks_per_node: int
    device: str


class Outputs(NamedTuple):
    """What one rank got of DeepEP, under the names of vector files."""

    named: Dict[str, torch.Tensor]
    problems: List[str]  # what DeepEP says, in a handle or elsewhere, that is not so


def to_codes(tensor: torch.Tensor) -> torch.Tensor:
    """FP8 as its codes; other tensors as they are."""
    return tensor.view(torch.uint8) if tensor.dtype == fp8_dtype() else tensor


def from_codes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(fp8_dtype())


def fp8_dtype():
    return getattr(torch, "float8_e4m3fn", torch.uint8)


def on_host(named):
    return {name: tensor.cpu() for name, tensor in named.items() if tensor is not None}
