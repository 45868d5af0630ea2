"""The comparison with DeepEP, tried on a stand-in: what is right passes, what is wrong is named."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import compare_deep_ep
import stand_in_deep_ep
from deepep_reference import cases
from deepep_reference.safetensors_file import read

FOLDER = Path(__file__).parent.parent
NUM_RANKS = 3
ARGUMENTS = ["--tokens", "4", "--hidden", "512", "--topk", "3", "--experts", "6"]


class Threads:
    """A group whose ranks are threads."""

    def __init__(self):
        self.barrier = threading.Barrier(NUM_RANKS, timeout=60)
        self.slots = [None] * NUM_RANKS

    def member(self, rank):
        return Member(self, rank)


class Member:
    def __init__(self, threads, rank):
        self.threads, self._rank = threads, rank

    def rank(self):
        return self._rank

    def size(self):
        return NUM_RANKS

    def gather_of_threads(self, mine):
        self.threads.slots[self._rank] = mine
        self.threads.barrier.wait()
        gathered = list(self.threads.slots)
        self.threads.barrier.wait()
        return gathered


def problems_of(only, fault=""):
    """By case and rank what the comparison says."""
    options = compare_deep_ep.parse(ARGUMENTS + ["--only", only])
    options.ranks_per_node = NUM_RANKS
    found, errors, threads = {}, [], Threads()

    def run(rank):
        try:
            world = compare_deep_ep.World(threads.member(rank), NUM_RANKS, "cpu")
            chosen = compare_deep_ep.make_cases(options, NUM_RANKS, NUM_RANKS)
            buffers = {
                kind: compare_deep_ep.open_buffer(stand_in_deep_ep, options, world.group, kind)
                for kind in {compare_deep_ep.kind_of_buffer(case): None for case in chosen.values()}
            }
            for name, case in chosen.items():
                buffer = buffers[compare_deep_ep.kind_of_buffer(case)]
                found[name, rank] = compare_deep_ep.compare(buffer, case, world)[1]
        except Exception as error:
            errors.append(error)
            threads.barrier.abort()

    stand_in_deep_ep.fault = fault
    ranks = [threading.Thread(target=run, args=(rank,)) for rank in range(NUM_RANKS)]
    for thread in ranks:
        thread.start()
    for thread in ranks:
        thread.join()
    stand_in_deep_ep.fault = ""
    if errors:
        raise errors[0]
    return found


def test_the_same():
    found = problems_of("")
    assert len(found) == 12 * NUM_RANKS
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    "fault, only, named",
    [
        ("layout", "normal-bf16", "num_tokens_per_expert"),
        ("rows", "normal-bf16", "recv_x"),
        ("rows", "normal-fp8", "recv_x"),
        ("rows", "worst-case", "recv_x"),
        ("cached", "normal-bf16", "the cached dispatch"),
        ("weights", "normal-bf16", "recv_topk_weights"),
        ("counts", "normal-fp8", "num_recv_tokens_per_expert"),
        ("handle", "normal-bf16", "handle: recv_src_idx"),
        ("combine", "normal-bf16-bias", "combined_x"),
        ("combine", "normal-bf16", "combined_x"),
        ("codes", "low-latency-fp8", "recv_x"),
        ("codes", "low-latency-bf16", "recv_x"),
        ("scales", "low-latency-fp8", "recv_scales"),
        ("scales", "low-latency-ue8m0", "recv_scales"),
        ("ranges", "low-latency-bf16", "handle: layout_range"),
        ("low-latency combine", "low-latency-bf16", "combined_x"),
        ("low-latency combine", "low-latency-logfmt", "combined_x"),
        ("slots", "v2-expanded-bf16", "handle: the slots of expert"),
        ("tokens", "v2-expanded-bf16", "handle: recv_src_metadata"),
        ("rows", "v2-expanded-bf16", "recv_x"),
        ("rows", "v2-expanded-fp8", "recv_x"),
        ("rows", "v2-pre-reduced", "recv_x: row"),
        ("padding", "v2-expanded-fp8", "recv_x"),
        ("weights", "v2-expanded-bf16", "recv_topk_weights"),
        ("counts", "v2-expanded-fp8", "num_recv_tokens_per_expert"),
        ("offsets", "v2-expanded-fp8", "expert_offsets"),
        ("combine", "v2-expanded-bf16", "combined_x"),
        ("combine", "v2-pre-reduced", "combined_x"),
    ],
)
def test_what_is_wrong_is_named(fault, only, named):
    for problems in problems_of(only, fault).values():
        assert any(problem.startswith(named) for problem in problems), problems


@pytest.mark.parametrize("only, number", [("low-latency", 5), ("v2", 3)])
def test_as_a_user_would_start_it(tmp_path, only, number):
    """In processes, as torchrun starts them; and the vectors that it saves hold."""
    arguments = [*ARGUMENTS, "--only", only, "--save", str(tmp_path / "vectors")]
    arguments += ["--module", "stand_in_deep_ep", "--device", "cpu"]
    arguments += ["--rendezvous", f"file://{tmp_path / 'rendezvous'}"]
    processes = [
        subprocess.Popen(
            [sys.executable, str(FOLDER / "compare_deep_ep.py"), *arguments],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": "2",
                "PYTHONPATH": str(FOLDER / "tests"),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    printed = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], printed
    assert printed[0].count(": the same") == number
    files = sorted((tmp_path / "vectors").iterdir())
    assert len(files) == number
    for file in files:
        case, outcomes = cases.from_content(read(file))
        expected = cases.run(case)
        for mine, saved in zip(expected, outcomes):
            held = cases.Outcome(saved.outputs, saved.bounds)
            assert cases.differences(held, mine.outputs) == []


def test_without_an_elastic_buffer_its_cases_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.delattr(stand_in_deep_ep, "ElasticBuffer")
    arguments = [*ARGUMENTS, "--only", "v2", "--module", "stand_in_deep_ep", "--device", "cpu"]
    arguments += ["--rendezvous", f"file://{tmp_path / 'rendezvous'}"]
    assert compare_deep_ep.main(arguments) == 0
    assert "left out: v2-expanded-bf16, " in capsys.readouterr().out


def test_unequal_rows_are_put_in_order():
    """Two sources that arrived in the other order, and one's tokens too."""
    count = torch.tensor([3])
    src_info = torch.tensor([[5, 4, 1, 99]])
    layout_range = torch.tensor([[2 << 32 | 1, 0 << 32 | 2]])
    order = compare_deep_ep.RowOrder(count, src_info, layout_range)
    assert order.problems == []
    assert order.packed(src_info).tolist() == [1, 4, 5]
    assert order.range_count.tolist() == [[1, 2]]
    assert order.range_begin().tolist() == [[0, 1]]
    back = torch.zeros(1, 4, dtype=torch.int64)
    order.unpack(torch.tensor([1, 4, 5]), back)
    assert back.tolist() == [[5, 4, 1, 0]]
