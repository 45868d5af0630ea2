"""Times an expert-parallel layer in PyTorch, its tokens exchanged by all-to-all of NCCL, or of gloo on CPUs.

    python3 layer_times.py --hidden 2048 --intermediate 768 --experts 128 --topk 8 --tokens 1 8 32 128 --json pytorch.json

A process for each GPU, or for each of --ranks on CPUs; BF16, random weights. It prints the slowest rank's microseconds
for each part of the layer, after which it waits for its GPU, and for the whole of it without such waits. It records
them as `LayerTimes` of the Java side does: `deepep report` shows both. The first token of every rank is compared with
what its experts make of it one by one.
"""

import argparse
import json
import os
import socket
import time
from typing import List, NamedTuple

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
import torch.nn.functional as functional

WARM_UP, TIMES = 10, 30
PARTS = ("gate", "dispatch", "experts", "combine")


class Shape(NamedTuple):
    hidden: int
    intermediate: int
    experts: int
    topk: int


def random_tensor(seed, shape, device, scale=0.02):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator) * scale).to(device, torch.bfloat16)


def expert_weights(shape, expert, device):
    """Gate and up projection [2I, H], and down projection [H, I]: those of an expert on whatever rank."""
    up = random_tensor(2 * expert, (2 * shape.intermediate, shape.hidden), device)
    down = random_tensor(2 * expert + 1, (shape.hidden, shape.intermediate), device)
    return up, down


def swiglu(x):
    gate, up = x.chunk(2, dim=-1)
    return functional.silu(gate) * up


def exchange(rows, sent, received):
    """Rows from all ranks; as bytes, because gloo knows no BF16."""
    came = rows.new_empty(sum(received), rows.shape[1])
    dist.all_to_all_single(came.view(torch.uint8), rows.view(torch.uint8), received, sent)
    return came


class Layer:
    """One rank's share of the layer."""

    def __init__(self, shape, device):
        self.shape = shape
        self.world = dist.get_world_size()
        self.num_local = shape.experts // self.world
        first = dist.get_rank() * self.num_local
        weights = [expert_weights(shape, first + e, device) for e in range(self.num_local)]
        self.up = torch.stack([up for up, _ in weights])
        self.down = torch.stack([down for _, down in weights])
        self.router = random_tensor(-1 % 2**31, (shape.experts, shape.hidden), device, 1.0).float()

    def gate(self, x):
        """Experts [T, K] and weights [T, K]."""
        scores = torch.softmax(x.float() @ self.router.t(), dim=-1)
        weights, experts = scores.topk(self.shape.topk, dim=-1)
        return experts, weights / weights.sum(dim=-1, keepdim=True)

    def dispatch(self, x, experts):
        """The rows of this rank's experts, by expert, and what combine needs to send their results home."""
        selections = experts.flatten()
        order = selections.argsort(stable=True)
        counts = torch.bincount(selections, minlength=self.shape.experts)
        received_counts = torch.empty_like(counts)
        dist.all_to_all_single(received_counts, counts)
        sent = counts.view(self.world, -1).sum(dim=1).tolist()
        by_source = received_counts.view(self.world, -1)
        received = by_source.sum(dim=1).tolist()
        rows = exchange(x[order // self.shape.topk], sent, received)
        # Rows come by source, then by expert.
        expert_of_row = torch.arange(self.num_local, device=x.device).repeat(self.world)
        by_expert = expert_of_row.repeat_interleave(by_source.flatten()).argsort(stable=True)
        return rows[by_expert], by_source.sum(dim=0), (order, by_expert, sent, received)

    def experts(self, rows, counts):
        if rows.is_cuda and hasattr(torch, "_grouped_mm"):
            ends = counts.cumsum(0).to(torch.int32)
            inner = swiglu(torch._grouped_mm(rows, self.up.transpose(1, 2), offs=ends))
            return torch._grouped_mm(inner, self.down.transpose(1, 2), offs=ends)
        parts = [
            swiglu(part @ up.t()) @ down.t()
            for part, up, down in zip(rows.split(counts.tolist()), self.up, self.down)
        ]
        return torch.cat(parts)

    def combine(self, results, weights, way):
        order, by_expert, sent, received = way
        by_source = torch.empty_like(results)
        by_source[by_expert] = results
        home = exchange(by_source, received, sent)
        rows = torch.empty_like(home)
        rows[order] = home
        rows = rows.view(*weights.shape, -1).float()
        return (rows * weights.unsqueeze(-1)).sum(dim=1).to(torch.bfloat16)

    def run(self, x, finish=lambda part: None):
        experts, weights = self.gate(x)
        finish("gate")
        rows, counts, way = self.dispatch(x, experts)
        finish("dispatch")
        results = self.experts(rows, counts)
        finish("experts")
        out = self.combine(results, weights, way)
        finish("combine")
        return out

    def require_right(self, x, out):
        """Compares the first token with what its experts make of it one by one."""
        token = x[:1]
        experts, weights = self.gate(token)
        expected = torch.zeros(1, x.shape[1], device=x.device)
        for expert, weight in zip(experts[0].tolist(), weights[0]):
            up, down = expert_weights(self.shape, expert, x.device)
            expected += weight * (swiglu(token @ up.t()) @ down.t()).float()
        error = (out[:1].float() - expected).abs().max().item()
        limit = 0.02 * expected.abs().max().item()
        if not error <= limit:
            raise AssertionError(f"rank {dist.get_rank()}: the first token differs by {error}, more than {limit}")


def slowest(micros: List[float], device):
    tensor = torch.tensor(micros, dtype=torch.float64, device=device)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor.tolist()


def measure(layer, tokens, device):
    """Microseconds of each part and of the whole layer: means of many, of the slowest rank."""
    x = random_tensor(1000 + dist.get_rank(), (tokens, layer.shape.hidden), device, 1.0)
    layer.require_right(x, layer.run(x))

    def finish():
        if x.is_cuda:
            torch.cuda.synchronize()

    def repeat(act):
        for _ in range(WARM_UP):
            act()
        finish()
        dist.barrier()

    spent = dict.fromkeys(PARTS, 0.0)
    begun = [0.0]

    def lap(part):
        finish()
        now = time.perf_counter()
        spent[part] += now - begun[0]
        begun[0] = now

    def by_part():
        finish()
        begun[0] = time.perf_counter()
        layer.run(x, lap)

    repeat(by_part)
    spent.update(dict.fromkeys(PARTS, 0.0))
    for _ in range(TIMES):
        by_part()
    repeat(lambda: layer.run(x))
    begin = time.perf_counter()
    for _ in range(TIMES):
        layer.run(x)
    finish()
    whole = time.perf_counter() - begin
    micros = slowest([1e6 * each / TIMES for each in (*spent.values(), whole)], device)
    return dict(zip((f"{part}Micros" for part in (*PARTS, "layer")), micros))


def run_rank(rank, world, port, arguments):
    on_gpus = arguments.device == "cuda"
    device = torch.device("cuda", rank) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("nccl" if on_gpus else "gloo", rank=rank, world_size=world)
    shape = Shape(arguments.hidden, arguments.intermediate, arguments.experts, arguments.topk)
    with torch.no_grad():
        layer = Layer(shape, device)
        records = []
        for tokens in arguments.tokens:
            record = {
                "layer": "PyTorch, all-to-all of " + ("NCCL" if on_gpus else "gloo"),
                "mode": "normal",
                **shape._asdict(),
                "ranks": world,
                "device": torch.cuda.get_device_name(device) if on_gpus else "cpu",
                "tokens": tokens,
                **measure(layer, tokens, device),
            }
            records.append(record)
            if rank == 0:
                parts = ", ".join(f"{part} {record[part + 'Micros']:.0f} us" for part in (*PARTS, "layer"))
                print(f"{tokens} tokens: {parts}", flush=True)
    if rank == 0 and arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(records, file, indent=2)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in Shape._fields:
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--tokens", type=int, nargs="+", required=True, help="of each rank")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--ranks", type=int, help="processes; a GPU each, all by default")
    parser.add_argument("--json", help="file for the records")
    given = parser.parse_args(arguments)
    world = given.ranks or (torch.cuda.device_count() if given.device == "cuda" else 2)
    if world < 1:
        parser.error("there is no GPU that PyTorch can use; give --device cpu")
    if given.experts % world != 0:
        parser.error(f"--experts {given.experts} is not a multiple of the {world} ranks")
    if not 1 <= given.topk <= given.experts:
        parser.error(f"--topk {given.topk} is not in [1, {given.experts}]")
    if min(given.tokens) < 1:
        parser.error(f"--tokens {min(given.tokens)} is not at least 1")
    multiprocessing.spawn(run_rank, (world, free_port(), given), nprocs=world)


if __name__ == "__main__":
    main()
