// The network policy over queue pairs that this GPU drives itself (IBGDA): it writes the entries of the send queues and
// rings the network card. See network.cuh for the contract, mlx5.cuh for the formats.
//
// Network memory is registered with the card. What is composed for node n lies `outbox` bytes past cell n. A peer has
// queues_per_node queue pairs; a block uses the one of its number, so it keeps its order, which a reliable connection
// carries to the peer. A signal is an atomic: nothing overtakes it, also where writes may overtake each other (relaxed
// ordering, adaptive routing). Any number of warps may share a queue pair.
//
// A submission takes its place in the queue (reserved), writes its entries, waits for its turn (ready), then tells the
// card how far the queue is written: first in the record, then by the doorbell. Where another has taken a place behind
// it, it leaves that to the other, for up to `batch` blocks. Completions are read when the queue is full: then a
// submission waits for its turn first, so that it can ring for what others left to it, and then for room.
//
// A card that reports an error, or is not done within the timeout, fails the queue pair: the first thread to see it
// writes the fault, and from then on nothing is sent through it. The kernel learns of that when it waits for the peers,
// or in quiet().
#pragma once

#include "deepep/ibgda_structs.cuh"
#include "deepep/mlx5.cuh"
#include "deepep/network.cuh"

namespace deepep {

class Ibgda {
  public:
    static constexpr bool kWordsFollowTheirBlock = false;

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
        auto write = [&](const Queue& queue, uint64_t index, bool last) {
            write_put(queue, index, last, to, from, num_bytes);
        };
        submit_warp<mlx5::kWriteBlocks>(net, active, node, idx_of_block(net), write);
    }

    static __device__ __forceinline__ void put_signal_from(const Network& net, bool active, int node, uint64_t from,
                                                           uint64_t to, uint64_t num_bytes, uint64_t flag,
                                                           uint64_t value) {
        constexpr int kBlocks = mlx5::kWriteBlocks + mlx5::kSwapBlocks;
        submit_warp<kBlocks>(net, active, node, idx_of_block(net), [&](const Queue& queue, uint64_t index, bool last) {
            write_put(queue, index, false, to, from, num_bytes);
            write_signal(queue, index + mlx5::kWriteBlocks, last, flag, value);
        });
    }

    // Two words side by side, by atomics in the first queue pair to the node, whichever the block.
    static __device__ __forceinline__ void put_words(const Network& net, bool active, int node, uint64_t to,
                                                     uint64_t first, uint64_t second) {
        submit_warp<2 * mlx5::kSwapBlocks>(net, active, node, 0, [&](const Queue& queue, uint64_t index, bool last) {
            write_signal(queue, index, false, to, first);
            write_signal(queue, index + mlx5::kSwapBlocks, last, to + sizeof(first), second);
        });
    }

    static __device__ __forceinline__ void signal(const Network& net, int node, const Cells& flags,
                                                  uint64_t flag_offset, uint64_t value) {
        Queue queue = queue_of_block(net, node);
        uint64_t first = reserve(queue, mlx5::kSwapBlocks);
        if (first == kRefused) return;
        write_signal(queue, first, true, own_cell(net, flags) + flag_offset, value);
        ring(queue, first, first + mlx5::kSwapBlocks);
    }

    template <typename Asked>
    static __device__ inline void quiet(const Network& net, Asked asked) {
        uint64_t deadline = 0;
        for (int node = 0; node < net.num_nodes; ++node)
            if (asked(node)) quiet_to(net, node, deadline);
        fence_sys();
    }

    static __device__ inline void quiet(const Network& net) {
        quiet(net, [](int) { return true; });
    }

    // The same of what it has sent to one node, but for the order of memory. All queues have one deadline, so that a
    // dead peer takes no longer than one timeout: 0 until it is known.
    static __device__ __forceinline__ void quiet_to(const Network& net, int node, uint64_t& deadline) {
        const auto rank = at<const IbgdaQueues>(net.queues);
        for (uint32_t idx = 0; idx < rank->queues_per_node; ++idx) {
            Queue queue(net, node, idx);
            await_completed(queue, load_acquire_gpu(&queue.shared->ready), kIbgdaNoCompletion, deadline);
        }
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

        __device__ mlx5::Segment* block(uint64_t index) const {
            return at<mlx5::Segment>(shared->entries, (index & (rank->num_blocks - 1)) * kIbgdaBlockBytes);
        }
    };

    static __device__ __forceinline__ uint32_t idx_of_block(const Network& net) {
        return blockIdx.x % at<const IbgdaQueues>(net.queues)->queues_per_node;
    }

    static __device__ __forceinline__ Queue queue_of_block(const Network& net, int node) {
        return Queue(net, node, idx_of_block(net));
    }

    // Offset of the cell that this rank writes at its peers.
    static __device__ __forceinline__ uint64_t own_cell(const Network& net, const Cells& cells) {
        return cells.offset + static_cast<uint64_t>(net.node) * cells.stride;
    }

    static __device__ __forceinline__ void write_put(const Queue& queue, uint64_t index, bool last, uint64_t to,
                                                     uint64_t from, uint64_t num_bytes) {
        mlx5::Segment* entry = queue.block(index);
        entry[0] = mlx5::control(mlx5::kRdmaWrite, index, queue.shared->number, mlx5::kWriteSegments, last);
        entry[1] = mlx5::address(queue.peer->base + to, queue.shared->remote_key);
        entry[2] = mlx5::data(from, queue.shared->local_key, static_cast<uint32_t>(num_bytes));
    }

    static __device__ __forceinline__ void write_signal(const Queue& queue, uint64_t index, bool last, uint64_t to,
                                                        uint64_t value) {
        mlx5::Segment* entry = queue.block(index);
        entry[0] = mlx5::control(mlx5::kMaskedSwap, index, queue.shared->number, mlx5::kSwapSegments, last);
        entry[1] = mlx5::address(queue.peer->base + to, queue.shared->remote_key);
        entry[2] = mlx5::swap(value);
        entry[3] = mlx5::all_bits();
        *queue.block(index + 1) = mlx5::data(queue.shared->landing, queue.shared->local_key, sizeof(uint64_t));
    }

    // A warp whose active lanes submit kBlocks each to the queue pair idx of a node; those for the same go together.
    // write(queue, index, last) writes them from `index` on.
    template <int kBlocks, typename Write>
    static __device__ __forceinline__ void submit_warp(const Network& net, bool active, int node, uint32_t idx,
                                                       Write write) {
        uint32_t lanes = __ballot_sync(~0u, active);
        if (!active) return;
        uint32_t group = __match_any_sync(lanes, node);
        uint32_t lane = threadIdx.x % 32;
        int leader = __ffs(group) - 1, size = __popc(group), place = __popc(group & ((1u << lane) - 1));
        Queue queue(net, node, idx);
        uint64_t first = 0;
        if (place == 0) first = reserve(queue, size * kBlocks);
        first = __shfl_sync(group, first, leader);
        if (first == kRefused) return;
        // The leader has acquired that the card is done with the entries: a shuffle orders no memory.
        __syncwarp(group);
        write(queue, first + place * kBlocks, place + 1 == size);
        __syncwarp(group);
        if (place == 0) ring(queue, first, first + size * kBlocks);
    }

    // The first of num_blocks blocks that this thread may write, once the card is done with what was there.
    static __device__ inline uint64_t reserve(const Queue& queue, uint32_t num_blocks) {
        if (has_failed(queue)) return kRefused;
        uint64_t first = add_relaxed_gpu(&queue.shared->reserved, num_blocks);
        uint64_t end = first + num_blocks, room = load_acquire_gpu(&queue.shared->completed) + queue.rank->num_blocks;
        return end <= room || await_room(queue, first, end) ? first : kRefused;
    }

    static __device__ __noinline__ bool await_room(const Queue& queue, uint64_t first, uint64_t end) {
        if (!await_turn(queue, first)) return false;
        ring_now(queue, first);
        uint64_t deadline = 0;
        return await_completed(queue, end - queue.rank->num_blocks, kIbgdaNoRoom, deadline);
    }

    // Tells the card of blocks [first, end), after those before them; or leaves it to the submission behind them.
    static __device__ inline void ring(const Queue& queue, uint64_t first, uint64_t end) {
        if (!await_turn(queue, first)) return;
        IbgdaQueue* shared = queue.shared;
        bool is_last = load_acquire_gpu(&shared->reserved) == end;
        if (is_last || end - shared->rung >= queue.rank->batch) ring_now(queue, end);
        store_release_gpu(&shared->ready, end);  // release; pairs with await_turn of the next submission
    }

    // By the thread whose turn it is.
    static __device__ inline void ring_now(const Queue& queue, uint64_t end) {
        IbgdaQueue* shared = queue.shared;
        if (shared->rung == end) return;
        // release; the card reads the record after the doorbell, then entries and data
        store_release_sys(at<uint32_t>(shared->record, 4), mlx5::record(end));
        store_release_sys(at<uint64_t>(shared->doorbell), mlx5::doorbell(end, shared->number));
        shared->rung = end;
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
        uint64_t word = load_acquire_sys(at<const uint64_t>(queue.shared->completion, 56));
        uint32_t opcode = mlx5::completion_opcode(word);
        if (opcode == mlx5::kRequestError || opcode == mlx5::kResponseError) {
            fail(queue, kIbgdaErrorCompletion, completed + 1, mlx5::completion_index(word));
            return false;
        }
        uint16_t done = static_cast<uint16_t>(mlx5::completion_end(word) - completed);
        if (opcode == mlx5::kRequestDone && done != 0 && done <= queue.rank->num_blocks)
            max_release_gpu(&queue.shared->completed, completed + done);
        return true;
    }

    // True once the card has completed all entries before `end`.
    static __device__ inline bool await_completed(const Queue& queue, uint64_t end, uint32_t kind,
                                                  uint64_t& deadline) {
        for (int spins = 1;; ++spins) {
            uint64_t completed = load_acquire_gpu(&queue.shared->completed);
            if (completed >= end) return true;
            if (!look(queue, completed)) return false;
            if (spins % kSpinsPerLook == 0 && is_over(queue, deadline, kind, end)) return false;
        }
    }

    // The slow path of a wait: true if the queue pair has failed, or does so by now. The first to ask sets a deadline
    // of 0.
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

    // entry: that of an error completion.
    static __device__ __noinline__ void fail(const Queue& queue, uint32_t kind, uint64_t waited_for,
                                             uint32_t entry) {
        if (atomicExch(&queue.shared->failed, 1u) != 0) return;
        auto fault = at<volatile IbgdaFault>(queue.shared->fault);
        fault->peer = queue.peer->rank;
        fault->queue = queue.shared->number;
        fault->waited_for = waited_for;
        if (kind == kIbgdaErrorCompletion) {
            uint32_t word = *at<const volatile uint32_t>(queue.shared->completion, 52);
            fault->syndrome = word >> 24;
            fault->vendor_syndrome = word >> 16 & 0xff;
            fault->entry = entry;
        }
        fence_sys();  // release; pairs with the host's acquire of `kind`
        fault->kind = kind;
    }
};

}  // namespace deepep
