"""Implements ``deep_ep``'s names over the reference, so that the comparison can be tried without it.

It is like DeepEP where that differs from this project: sources and tokens of low-latency rows
come in other orders, biases are added first, and handles are tuples. ``fault`` makes one thing
wrong.
"""

import torch
import torch.distributed

from deepep_reference import low_latency, normal
from deepep_reference.layout import get_dispatch_layout

fault = ""

_FP8 = getattr(torch, "float8_e4m3fn", torch.uint8)


class Buffer:
    def __init__(
        self,
        group,
        num_nvl_bytes=0,
        num_rdma_bytes=0,
        low_latency_mode=False,
        num_qps_per_rank=24,
        explicitly_destroy=False,
    ):
        assert (num_rdma_bytes if low_latency_mode else num_nvl_bytes) > 0
        assert explicitly_destroy
        self.group = group
        self.rank = group.rank()
        self.places = {}  # what the tuple handles of DeepEP do not have to say here

    @staticmethod
    def get_low_latency_rdma_size_hint(num_max_dispatch_tokens_per_rank, hidden, num_ranks, num_experts):
        return 2 * num_experts * num_max_dispatch_tokens_per_rank * hidden * 2

    def _of_all_ranks(self, mine):
        if hasattr(self.group, "gather_of_threads"):
            return self.group.gather_of_threads(mine)
        gathered = [None] * self.group.size()
        torch.distributed.all_gather_object(gathered, mine, group=self.group)
        return gathered

    def destroy(self):
        self.group = None

    def get_dispatch_layout(self, topk_idx, num_experts):
        layout = get_dispatch_layout(topk_idx, num_experts, self.group.size(), self.group.size())
        per_expert = layout.num_tokens_per_expert
        if fault == "layout":
            per_expert = per_expert + 1
        in_rank = layout.is_token_in_rank
        return layout.num_tokens_per_rank, layout.num_tokens_per_rdma_rank, per_expert, in_rank, None

    def dispatch(
        self,
        x,
        handle=None,
        num_tokens_per_rank=None,
        num_tokens_per_rdma_rank=None,
        is_token_in_rank=None,
        num_tokens_per_expert=None,
        topk_idx=None,
        topk_weights=None,
        expert_alignment=1,
        num_worst_tokens=0,
    ):
        rows, scales = x if isinstance(x, tuple) else (x, None)
        if handle is not None:
            assert topk_idx is None and topk_weights is None
            _, num_experts, topk_idx, topk_weights = self.places[id(handle)]
        else:
            assert is_token_in_rank is not None and num_tokens_per_expert is not None
            num_experts = len(num_tokens_per_expert)
        codes = rows.view(torch.uint8) if rows.dtype == _FP8 else rows
        tokens = self._of_all_ranks(normal.Tokens(codes, topk_idx, topk_weights, scales))
        received = normal.dispatch(tokens, num_experts)
        mine = received[self.rank]
        counts = mine.counts(expert_alignment).tolist()
        if num_worst_tokens > 0:
            mine, counts = normal.pad_to_worst_case(mine, num_worst_tokens), []
        recv_x, recv_idx, recv_weights = mine.x.clone(), mine.topk_idx, mine.topk_weights
        if fault == "rows" or (fault == "cached" and handle is not None):
            recv_x[[0, 1]] = recv_x[[1, 0]]
        if fault == "weights":
            recv_weights = recv_weights + 2.0**-20
        recv_x = recv_x.view(_FP8) if rows.dtype == _FP8 else recv_x
        recv = recv_x if scales is None else (recv_x, mine.scales)
        if handle is not None:
            return recv, None, None, None, None, None
        handle = self._handle(received, mine)
        self.places[id(handle)] = (received, num_experts, topk_idx, topk_weights)
        self.last_tokens = tokens
        if fault == "counts" and counts:
            counts[-1] += 1
        return recv, recv_idx, recv_weights, counts, handle, None

    def _handle(self, received, mine):
        size = self.group.size()
        matrix = torch.stack(
            [torch.bincount(r.src_rank, minlength=size).cumsum(0) for r in received], dim=1
        ).to(torch.int32)
        src_idx = mine.src_token.to(torch.int32)
        if fault == "handle":
            src_idx = src_idx.flip(0)
        return matrix, None, None, src_idx, None, None

    def combine(self, x, handle, topk_weights=None, bias=None):
        received = self.places[id(handle)][0]
        count = received[self.rank].x.shape[0]
        given = self._of_all_ranks((x[:count], topk_weights[:count]))
        home = normal.combine(
            self.last_tokens, received, [g[0] for g in given], [g[1] for g in given]
        )[self.rank]
        total = home.x
        if bias:
            # Summed again, biases first, as DeepEP does.
            total = self._with_biases_first(received, [g[0] for g in given], bias)
        if fault == "combine":
            total = total + total.abs().amax() / 64
        return total, home.topk_weights, None

    def _with_biases_first(self, received, outputs, biases):
        total = sum(bias.float() for bias in biases)
        for place, output in zip(received, outputs):
            mine = place.src_rank == self.rank
            total[place.src_token[mine]] += output[mine].float()
        return total.to(torch.bfloat16)

    def low_latency_dispatch(
        self,
        x,
        topk_idx,
        num_max_dispatch_tokens_per_rank,
        num_experts,
        cumulative_local_expert_recv_stats=None,
        use_fp8=True,
        round_scale=False,
        use_ue8m0=False,
    ):
        assert round_scale or not use_ue8m0
        formats = {(0, 0): low_latency.FP8, (1, 0): low_latency.FP8_POWER_OF_TWO}
        row_format = formats.get((round_scale, use_ue8m0), low_latency.FP8_UE8M0)
        given = self._of_all_ranks((x, topk_idx))
        received = low_latency.dispatch(
            [g[0] for g in given],
            [g[1] for g in given],
            num_experts,
            row_format if use_fp8 else low_latency.BF16,
        )
        mine = received[self.rank]
        cumulative_local_expert_recv_stats += mine.count
        slots = self.group.size() * num_max_dispatch_tokens_per_rank
        order, ranges = self._arrival(mine)
        src_info = _spread(mine.src_token[order], mine.count, slots)
        handle = (src_info, ranges, num_max_dispatch_tokens_per_rank, x.shape[1], num_experts)
        self.places[id(handle)] = (received, order)
        rows = _spread(mine.x[order], mine.count, slots)
        if fault == "codes":
            rows.view(torch.uint8)[0, 0, 0] ^= 1
        if use_fp8:
            scales = _spread(mine.scales[order], mine.count, slots)
            if fault == "scales":
                scales[0, 0, 0] *= 2
            rows = (rows.view(_FP8), scales)
        return rows, mine.count.clone(), handle, None, None

    def _arrival(self, mine):
        """The last source first, and of each source the last token first."""
        order, first = [], 0
        ranges = torch.zeros(mine.range_count.shape, dtype=torch.int64)
        for expert, number in enumerate(mine.count.tolist()):
            placed = 0
            for src in reversed(range(self.group.size())):
                count = int(mine.range_count[expert, src])
                begin = first + int(mine.range_begin[expert, src])
                order.append(torch.arange(begin + count - 1, begin - 1, -1))
                ranges[expert, src] = placed << 32 | count
                placed += count
            first += number
        if fault == "ranges":
            ranges[0] += 1 << 32
        return torch.cat(order), ranges

    def low_latency_combine(self, x, topk_idx, topk_weights, handle, use_logfmt=False):
        received, order = self.places[id(handle)]
        mine = received[self.rank]
        arrived = torch.cat([x[e, :n] for e, n in enumerate(mine.count.tolist())])
        rows = torch.empty_like(arrived)
        rows[order] = arrived
        given = self._of_all_ranks((rows, topk_idx, topk_weights))
        combined = low_latency.combine(
            received, [g[0] for g in given], [g[1] for g in given], [g[2] for g in given], use_logfmt
        )[self.rank].x
        if fault == "low-latency combine":
            combined = combined * 1.0625
        return combined, None, None


class ElasticBuffer:
    """V2's. Rows and slots come in the reverse order."""

    def __init__(
        self, group, num_max_tokens_per_rank, hidden, num_topk, explicitly_destroy=False
    ):
        assert explicitly_destroy and min(num_max_tokens_per_rank, hidden, num_topk) > 0
        self.group = group
        self.rank = group.rank()

    _of_all_ranks = Buffer._of_all_ranks
    destroy = Buffer.destroy

    def dispatch(
        self,
        x,
        topk_idx,
        topk_weights,
        num_experts,
        num_max_tokens_per_rank,
        expert_alignment=1,
        do_expand=False,
        do_zero_padding=False,
    ):
        rows, scales = x if isinstance(x, tuple) else (x, None)
        codes = rows.view(torch.uint8) if rows.dtype == _FP8 else rows
        tokens = self._of_all_ranks(normal.Tokens(codes, topk_idx, topk_weights, scales))
        received = normal.dispatch(tokens, num_experts)
        mine = received[self.rank]
        handle = ElasticHandle()
        handle.tokens, handle.received, handle.places = tokens, received, received
        order = torch.arange(len(mine.src_rank) - 1, -1, -1)
        numbers = mine.src_rank * num_max_tokens_per_rank + mine.src_token
        slots = torch.full(mine.topk_idx.shape, -1)
        if do_expand:
            assert do_zero_padding
            handle.places = [normal.expand(r, expert_alignment) for r in received]
            mine = handle.places[self.rank]
            handle.order = self._slots(mine, handle, expert_alignment)
            row_of = {int(number): row for row, number in enumerate(numbers)}
            for row in (mine.src_rank >= 0).nonzero().flatten().tolist():
                number = int(mine.src_rank[row] * num_max_tokens_per_rank + mine.src_token[row])
                slots[row_of[number], mine.selection[row]] = (handle.order == row).nonzero()[0, 0]
        else:
            handle.order = order
        if fault == "slots":
            slots[slots == slots.max()] += 1
        if fault == "tokens":
            numbers[0] += 10**6
        handle.recv_src_metadata = torch.cat(
            [numbers[:, None], torch.zeros_like(numbers)[:, None], slots], dim=1
        )[order].to(torch.int32)
        handle.num_recv_tokens_per_expert_list = received[self.rank].counts(expert_alignment).tolist()
        if fault == "counts":
            handle.num_recv_tokens_per_expert_list[-1] += 1
        recv_x = mine.x[handle.order]
        if fault == "rows":
            recv_x[[0, 1]] = recv_x[[1, 0]]
        if fault == "padding":
            recv_x += (mine.src_rank[handle.order] < 0)[:, None].to(recv_x.dtype)
        recv_x = recv_x.view(_FP8) if rows.dtype == _FP8 else recv_x
        weights = mine.topk_weights[handle.order] + (2.0**-20 if fault == "weights" else 0)
        recv = recv_x if scales is None else (recv_x, mine.scales[handle.order])
        return recv, None if do_expand else mine.topk_idx[order], weights, handle, None

    @staticmethod
    def _slots(place, handle, alignment):
        """For each slot the reference's row: each expert's last first, padding where it is."""
        order, ends = [], []
        for begin, end in zip(place.offsets[:-1].tolist(), place.offsets[1:].tolist()):
            real = int((place.src_rank[begin:end] >= 0).sum())
            order += [*range(begin + real - 1, begin - 1, -1), *range(begin + real, end)]
            ends.append(begin + real + (alignment if fault == "offsets" else 0))
        handle.psum_num_recv_tokens_per_expert = torch.tensor(ends, dtype=torch.int32)
        return torch.tensor(order, dtype=torch.int64)

    def combine(self, x, handle, topk_weights=None):
        rows = torch.empty_like(x)
        rows[handle.order] = x
        given = self._of_all_ranks((rows, topk_weights, handle.order))
        weights = None
        if topk_weights is not None:
            weights = [torch.empty_like(g[1]).index_copy_(0, g[2], g[1]) for g in given]
        home = normal.combine(handle.tokens, handle.places, [g[0] for g in given], weights)[self.rank]
        total = home.x + home.x.abs().amax() / 64 if fault == "combine" else home.x
        return total, home.topk_weights, None


class ElasticHandle:
    """Of V2's names what comparisons read, and what the stand-in remembers."""


def _spread(packed, count, slots):
    """[El, slots, ...] with the packed rows of each expert, the others undefined."""
    spread = torch.full((len(count), slots) + packed.shape[1:], 77).to(packed.dtype)
    for expert, rows in enumerate(packed.split(count.tolist())):
        spread[expert, : len(rows)] = rows
    return spread
