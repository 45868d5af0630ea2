// The network policy over queue pairs that this GPU drives itself (IBGDA): it writes the entries of the send queues and
// rings the network card. See network.cuh for the contract, mlx5.cuh for the formats.
//
// Network memory is registered with the card, under one key. What is composed for node n lies `outbox` bytes past cell
// n. A peer has queues_per_node queue pairs; a block uses the one of its number, so it keeps its order, which a
// reliable connection carries to the peer: data before their flag. Any number of warps may share a queue pair.
//
// A submission takes its place in the queue (reserved), waits for room, writes its entries, waits for its turn (ready),
// then tells the card how far the queue is written: first in the record, then by the doorbell.
//
// A card that reports an error, or is not done within the timeout, fails the queue pair: the first thread to see it,
// which is one that submits next or waits, writes the fault, and from then on nothing is sent through it. The kernel
// learns of that when it waits for the peers.
#pragma once

#include "deepep/ibgda_structs.cuh"
#include "deepep/mlx5.cuh"
#include "deepep/network.cuh"

namespace deepep {

class Ibgda {
  public:
    static __device__ __forceinline__ uint64_t outgoing(const Network& net, const Cells& cells, int node) {
        return incoming(net, cells, node) + net.outbox;
    }

    static __device__ __forceinline__ void put(const Network& net, bool active, int node, const Cells& cells,
                                               uint64_t offset, uint64_t num_bytes) {
        put_from(net, active, node, outgoing(net, cells, node) + offset, own_cell(net, cells) + offset, num_bytes);
    }

    static __device__ __forceinline__ void put_signal(const Network& net, bool active, int node, const Cells& cells,
                                                      uint64_t offset, uint64_t num_bytes, const Cells& flags,
                                                      uint64_t flag_offset, uint64_t value) {
        put_signal_from(net, active, node, outgoing(net, cells, node) + offset, own_cell(net, cells) + offset,
                        num_bytes, own_cell(net, flags) + flag_offset, value);
    }

    // The same for a range at any place of this rank's network memory or outbox, to any offset in the peer's.
    static __device__ __forceinline__ void put_from(const Network& net, bool active, int node, uint64_t from,
                                                    uint64_t to, uint64_t num_bytes) {
        submit_warp<1>(net, active, node, [&](const Queue& queue, uint64_t index, bool last) {
            write_put(queue, index, last, queue.peer->base + to, from, num_bytes);
        });
    }

    static __device__ __forceinline__ void put_signal_from(const Network& net, bool active, int node, uint64_t from,
                                                           uint64_t to, uint64_t num_bytes, uint64_t flag,
                                                           uint64_t value) {
        submit_warp<2>(net, active, node, [&](const Queue& queue, uint64_t index, bool last) {
            write_put(queue, index, false, queue.peer->base + to, from, num_bytes);
            write_inline(queue, index + 1, last, queue.peer->base + flag, value);
        });
    }

    static __device__ __forceinline__ void signal(const Network& net, int node, const Cells& flags,
                                                  uint64_t flag_offset, uint64_t value) {
        submit(net, node, [&](const Queue& queue, uint64_t index) {
            write_inline(queue, index, true, queue.peer->base + own_cell(net, flags) + flag_offset, value);
        });
    }

    static __device__ __forceinline__ void add(const Network& net, int node, const Cells& flags, uint64_t flag_offset,
                                               uint64_t value) {
        submit(net, node, [&](const Queue& queue, uint64_t index) {
            write_add(queue, index, true, queue.peer->base + own_cell(net, flags) + flag_offset, value);
        });
    }

    // This thread's block puts to the node through one queue pair, which keeps their order.
    static __device__ __forceinline__ void fence(const Network&, int) {}

    static __device__ inline void quiet(const Network& net) {
        const auto rank = at<const IbgdaQueues>(net.queues);
        for (int node = 0; node < net.num_nodes; ++node)
            for (uint32_t idx = 0; idx < rank->queues_per_node; ++idx) {
                Queue queue(net, node, idx);
                await_completed(queue, load_acquire_gpu(&queue.shared->ready), kIbgdaNoCompletion);
            }
        fence_sys();
    }

  private:
    static constexpr uint64_t kRefused = ~0ull;
    static constexpr int kSpinsPerLook = 64;  // between looks at the clock

    // One queue pair to a node, and what belongs to it.
    struct Queue {
        const IbgdaQueues* rank;
        const IbgdaPeer* peer;
        IbgdaQueue* shared;

        __device__ Queue(const Network& net, int node, uint32_t idx)
            : rank(at<const IbgdaQueues>(net.queues)),
              peer(at<const IbgdaPeer>(rank->peers) + node),
              shared(at<IbgdaQueue>(rank->queues) + node * rank->queues_per_node + idx) {}

        __device__ mlx5::Segment* entry(uint64_t index) const {
            return at<mlx5::Segment>(shared->entries, (index & (rank->num_entries - 1)) * kIbgdaEntryBytes);
        }
    };

    static __device__ __forceinline__ Queue queue_of_block(const Network& net, int node) {
        return Queue(net, node, blockIdx.x % at<const IbgdaQueues>(net.queues)->queues_per_node);
    }

    // Offset of the cell that this rank writes at its peers.
    static __device__ __forceinline__ uint64_t own_cell(const Network& net, const Cells& cells) {
        return cells.offset + static_cast<uint64_t>(net.node) * cells.stride;
    }

    static __device__ __forceinline__ void write_put(const Queue& queue, uint64_t index, bool last, uint64_t to,
                                                     uint64_t from, uint64_t num_bytes) {
        mlx5::Segment* entry = queue.entry(index);
        entry[0] = mlx5::control(mlx5::kRdmaWrite, index, queue.shared->number, 3, last);
        entry[1] = mlx5::address(to, queue.peer->remote_key);
        entry[2] = mlx5::data(from, queue.rank->local_key, static_cast<uint32_t>(num_bytes));
    }

    static __device__ __forceinline__ void write_inline(const Queue& queue, uint64_t index, bool last, uint64_t to,
                                                        uint64_t value) {
        mlx5::Segment* entry = queue.entry(index);
        entry[0] = mlx5::control(mlx5::kRdmaWrite, index, queue.shared->number, 3, last);
        entry[1] = mlx5::address(to, queue.peer->remote_key);
        entry[2] = mlx5::inline_data(value);
    }

    static __device__ __forceinline__ void write_add(const Queue& queue, uint64_t index, bool last, uint64_t to,
                                                     uint64_t value) {
        mlx5::Segment* entry = queue.entry(index);
        entry[0] = mlx5::control(mlx5::kAtomicFetchAdd, index, queue.shared->number, 4, last);
        entry[1] = mlx5::address(to, queue.peer->remote_key);
        entry[2] = mlx5::fetch_add(value);
        entry[3] = mlx5::data(queue.shared->landing, queue.rank->local_key, 8);
    }

    // A warp whose active lanes submit kEntries each; those for the same node go together. write(queue, index, last)
    // writes them from `index` on.
    template <int kEntries, typename Write>
    static __device__ __forceinline__ void submit_warp(const Network& net, bool active, int node, Write write) {
        uint32_t lanes = __ballot_sync(~0u, active);
        if (!active) return;
        uint32_t group = __match_any_sync(lanes, node);
        uint32_t lane = threadIdx.x % 32;
        int leader = __ffs(group) - 1, size = __popc(group), place = __popc(group & ((1u << lane) - 1));
        Queue queue = queue_of_block(net, node);
        uint64_t first = 0;
        if (place == 0) first = reserve(queue, size * kEntries);
        first = __shfl_sync(group, first, leader);
        if (first == kRefused) return;
        // The leader has acquired that the card is done with the entries: a shuffle orders no memory.
        __syncwarp(group);
        write(queue, first + place * kEntries, place + 1 == size);
        __syncwarp(group);
        if (place == 0) ring(queue, first, first + size * kEntries);
    }

    // A thread that submits one entry, which write(queue, index) writes.
    template <typename Write>
    static __device__ __forceinline__ void submit(const Network& net, int node, Write write) {
        Queue queue = queue_of_block(net, node);
        uint64_t first = reserve(queue, 1);
        if (first == kRefused) return;
        write(queue, first);
        ring(queue, first, first + 1);
    }

    // The first of num_entries entries that this thread may write, once the card is done with what was there.
    static __device__ inline uint64_t reserve(const Queue& queue, uint32_t num_entries) {
        if (has_failed(queue) || !look(queue, load_acquire_gpu(&queue.shared->completed))) return kRefused;
        uint64_t first = add_relaxed_gpu(&queue.shared->reserved, num_entries);
        uint64_t end = first + num_entries;
        bool ok = end <= queue.rank->num_entries || await_completed(queue, end - queue.rank->num_entries, kIbgdaNoRoom);
        return ok ? first : kRefused;
    }

    // Tells the card of entries [first, end), after those before them.
    static __device__ inline void ring(const Queue& queue, uint64_t first, uint64_t end) {
        if (!await_turn(queue, first)) return;
        IbgdaQueue* shared = queue.shared;
        // release; the card reads the record after the doorbell, then entries and data
        store_release_sys(at<uint32_t>(shared->record, 4), mlx5::record(end));
        store_release_sys(at<uint64_t>(shared->doorbell), mlx5::doorbell(end, shared->number));
        store_release_gpu(&shared->ready, end);  // release; pairs with await_turn of the next submission
    }

    static __device__ inline bool await_turn(const Queue& queue, uint64_t first) {
        uint64_t deadline = 0;
        for (int spins = 1; load_acquire_gpu(&queue.shared->ready) != first; ++spins)
            if (spins % kSpinsPerLook == 0 && is_over(queue, deadline, kIbgdaNoTurn, first)) return false;
        return true;
    }

    // Takes note of the latest completion; false if it is an error. `completed` may be old by now: then what is added
    // to it is less than what is done.
    static __device__ inline bool look(const Queue& queue, uint64_t completed) {
        uint32_t word = load_acquire_sys(at<const uint32_t>(queue.shared->completion, 60));
        uint32_t opcode = mlx5::completion_opcode(word);
        if (opcode == mlx5::kRequestError || opcode == mlx5::kResponseError) {
            fail(queue, kIbgdaErrorCompletion, completed + 1, word);
            return false;
        }
        uint16_t done = static_cast<uint16_t>(mlx5::completion_index(word) + 1 - completed);
        if (opcode == mlx5::kRequestDone && done != 0 && done <= queue.rank->num_entries)
            max_release_gpu(&queue.shared->completed, completed + done);
        return true;
    }

    // True once the card has completed all entries before `end`.
    static __device__ inline bool await_completed(const Queue& queue, uint64_t end, uint32_t kind) {
        uint64_t deadline = 0;
        for (int spins = 1;; ++spins) {
            uint64_t completed = load_acquire_gpu(&queue.shared->completed);
            if (completed >= end) return true;
            if (!look(queue, completed)) return false;
            if (spins % kSpinsPerLook == 0 && is_over(queue, deadline, kind, end)) return false;
        }
    }

    // The slow path of a wait: true if the queue pair has failed, or does so by now.
    static __device__ __noinline__ bool is_over(const Queue& queue, uint64_t& deadline, uint32_t kind, uint64_t index) {
        if (has_failed(queue)) return true;
        uint64_t now = now_ns();
        if (deadline == 0) deadline = now + queue.rank->timeout_ns;
        if (now < deadline) return false;
        fail(queue, kind, index, 0);
        return true;
    }

    static __device__ __forceinline__ bool has_failed(const Queue& queue) {
        return *static_cast<volatile uint32_t*>(&queue.shared->failed) != 0;
    }

    // completion: its last word, for an error completion.
    static __device__ __noinline__ void fail(const Queue& queue, uint32_t kind, uint64_t waited_for,
                                             uint32_t completion) {
        if (atomicExch(&queue.shared->failed, 1u) != 0) return;
        auto fault = at<volatile IbgdaFault>(queue.shared->fault);
        fault->peer = queue.peer->rank;
        fault->queue = queue.shared->number;
        fault->waited_for = waited_for;
        if (kind == kIbgdaErrorCompletion) {
            uint32_t word = *at<const volatile uint32_t>(queue.shared->completion, 52);
            fault->syndrome = word >> 24;
            fault->vendor_syndrome = word >> 16 & 0xff;
            fault->entry = mlx5::completion_index(completion);
        }
        fence_sys();  // release; pairs with the host's acquire of `kind`
        fault->kind = kind;
    }
};

}  // namespace deepep
