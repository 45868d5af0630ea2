// Normal-mode combine on one node: every rank pulls the rows of its tokens from the peers and sums them.
//
// Each rank launches it once per call. The header says where a rank's rows lie (its own heap or peer-visible memory);
// having read every header, a rank pulls chunks of rows into shared memory, sums them in fp32 in the order of the
// ranks, adds the biases in order and rounds once to bf16. Weights are summed likewise. The closing flags say that
// x may be overwritten.
//
// Writes: out, out_weights, the status block. Reads: the peers' x and weights, token_rows, handle_epoch, biases.
//
// Launch: any number of blocks up to 256, all of them resident together. Threads: 64 + consumers, where consumers is a
// multiple of 32, at least 192 and at least chunk_bytes / 32; warp 0 loads, warp 1 sums weights, the others sum rows.
// Dynamic shared memory: num_slots * chunk_bytes.
#include "bf16.cuh"
#include "deepep/bulk_copy.cuh"
#include "exchange.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

constexpr int kServiceWarps = 2;
constexpr int kMaxCombineThreads = 576;
constexpr int kVectors = 2;  // 16-byte vectors of a chunk that one consumer sums

constexpr int kRowBatch = 4;

// What the rows of one chunk of a token are, in the first of their slots.
struct SlotInfo {
    int32_t token;  // -1: no more
    int16_t chunk;
    int16_t num_rows;  // in consecutive slots; 0 takes one slot, without data
};
static_assert(sizeof(SlotInfo) == 8);

struct CombineShared {
    uint64_t full[kMaxSlots], empty[kMaxSlots];
    SlotInfo info[kMaxSlots];
    uint64_t x_base[kMaxRanks];
    uint64_t weights_base[kMaxRanks];
    int32_t x_stride[kMaxRanks];
    int32_t weights_stride[kMaxRanks];
    int32_t num_rows[kMaxRanks];
};

// One block, all threads.
__device__ inline void announce_combine(const CombineParams& p, uint32_t epoch, HeaderTable& table) {
    if (threadIdx.x < 32) {
        int32_t value = 0;
        switch (threadIdx.x) {
            case kOp: value = kOpCombine; break;
            case kHidden: value = p.hidden; break;
            case kTopk: value = p.topk; break;
            case kRowLimit: value = p.num_rows; break;
            case kXLow: value = static_cast<int32_t>(p.x); break;
            case kXHigh: value = static_cast<int32_t>(p.x >> 32); break;
            case kXStride: value = static_cast<int32_t>(p.x_stride); break;
            case kXAbsolute: value = p.x_absolute; break;
            case kWeightsLow: value = static_cast<int32_t>(p.weights); break;
            case kWeightsHigh: value = static_cast<int32_t>(p.weights >> 32); break;
            case kWeightsStride: value = static_cast<int32_t>(p.weights_stride); break;
            case kWeightsAbsolute: value = p.weights_absolute; break;
        }
        table.mine[threadIdx.x] = handle_word(p.handle_epoch, threadIdx.x, value);
    }
    fence_sys();  // x, written by earlier launches, comes before the words that offer it
    __syncthreads();
    send_header(p.group, epoch, table, nullptr, 0);
}

// All threads of every block: waits for the headers and learns where each peer's rows are. False: nothing to pull.
__device__ inline bool judge_combine(const CombineParams& p, uint32_t epoch, HeaderTable& table,
                                     CombineShared& shared) {
    const Group& g = p.group;
    bool arrived = read_headers(g, epoch, table);
    if (threadIdx.x < 32 && arrived) {
        Fault fault = judge_headers(g, table);
        if (threadIdx.x == 0 && fault.code != kOk) record_fault(g, epoch, fault);
        if (threadIdx.x == 0) table.verdict = fault.code;
    }
    int d = threadIdx.x;
    if (d < g.num_ranks && arrived) {
        const int32_t* h = table.of[d];
        auto address = [&](int low, int absolute) {
            uint64_t v = static_cast<uint64_t>(static_cast<uint32_t>(h[low + 1])) << 32 | static_cast<uint32_t>(h[low]);
            return h[absolute] ? v : g.heap[d] + v;
        };
        shared.x_base[d] = address(kXLow, kXAbsolute);
        shared.weights_base[d] = address(kWeightsLow, kWeightsAbsolute);
        shared.x_stride[d] = h[kXStride];
        shared.weights_stride[d] = h[kWeightsStride];
        shared.num_rows[d] = h[kRowLimit];
    }
    __syncthreads();
    return arrived && table.verdict == kOk;
}

// This lane's row of token t, or -1: lane l stands for rank l. A row that its owner does not offer is a fault.
__device__ __forceinline__ int32_t checked_row(const CombineParams& p, const CombineShared& shared, uint32_t epoch,
                                               int t, int rank) {
    if (rank >= p.group.num_ranks || t >= p.num_tokens) return -1;
    int32_t row = at<const int32_t>(p.token_rows)[static_cast<size_t>(t) * p.group.num_ranks + rank];
    if (row < shared.num_rows[rank]) return row;
    Fault fault;
    fault.code = kRowOutOfRange;
    fault.rank = p.group.rank;
    fault.peer = rank;
    fault.token = t;
    fault.expected = shared.num_rows[rank];
    fault.seen = row;
    record_fault(p.group, epoch, fault);
    return -1;
}

// Warp 0. Lane l fills the slot for rank l's row: all rows of a token are asked for at once. Tokens are handed out to
// the blocks in their order, because SMs do not get equal shares of the links.
__device__ inline void load_chunks(const CombineParams& p, CombineShared& shared, uint8_t* slots, uint32_t epoch) {
    int lane = threadIdx.x % 32;
    uint32_t row_bytes = p.hidden * 2, slot = 0, round = 0;  // of the next slot
    uint32_t* cursor = &state_of(p.group)->cursor;
    int t = blockIdx.x;
    int32_t row = checked_row(p, shared, epoch, t, lane);
    uint32_t ticket = lane == 0 ? atomicAdd(cursor, 1) : 0;
    while (t < p.num_tokens) {
        int next = gridDim.x + __shfl_sync(~0u, ticket, 0);
        if (lane == 0) ticket = atomicAdd(cursor, 1);
        int32_t next_row = checked_row(p, shared, epoch, next, lane);
        uint32_t senders = __ballot_sync(~0u, row >= 0);
        uint32_t count = max(1, __popc(senders));  // a token that went nowhere takes an empty slot
        bool mine = senders == 0 ? lane == 0 : row >= 0;
        uint32_t order = __popc(senders & ((1u << lane) - 1));
        for (int chunk = 0; chunk < p.num_chunks; ++chunk) {
            // acquire; pairs with every consumer's arrival. Consumers leave the slots in their order, so the last one
            // that the token needs speaks for all; one barrier for all lanes is also what racecheck can follow.
            uint32_t last = slot + count - 1, last_round = round;
            if (last >= static_cast<uint32_t>(p.num_slots)) last -= p.num_slots, ++last_round;
            barrier_wait(&shared.empty[last], ~last_round & 1);
            if (mine) {
                uint32_t s = slot + order;
                if (s >= static_cast<uint32_t>(p.num_slots)) s -= p.num_slots;
                if (order == 0)
                    shared.info[s] = {t, static_cast<int16_t>(chunk), static_cast<int16_t>(__popc(senders))};
                if (row >= 0) {
                    uint32_t begin = chunk * p.chunk_bytes, bytes = min(row_bytes - begin, p.chunk_bytes);
                    barrier_arrive_expect(&shared.full[s], bytes);
                    uint64_t offset = static_cast<uint64_t>(row) * shared.x_stride[lane];
                    auto from = at<const uint8_t>(shared.x_base[lane] + begin, offset);
                    bulk_load(slots + s * p.chunk_bytes, from, bytes, &shared.full[s]);
                } else {
                    barrier_arrive(&shared.full[s]);
                }
            }
            slot += count;
            if (slot >= static_cast<uint32_t>(p.num_slots)) slot -= p.num_slots, ++round;
        }
        t = next;
        row = next_row;
        __syncwarp();
    }
    if (lane == 0) {
        barrier_wait(&shared.empty[slot], ~round & 1);
        shared.info[slot].token = -1;
        barrier_arrive(&shared.full[slot]);
    }
}

// Warp 1. Lanes take (token, k) pairs of this block's tokens.
__device__ inline void sum_weights(const CombineParams& p, const CombineShared& shared) {
    int num_mine = (p.num_tokens - static_cast<int>(blockIdx.x) + gridDim.x - 1) / static_cast<int>(gridDim.x);
    for (int i = threadIdx.x % 32; i < num_mine * p.topk; i += 32) {
        int t = blockIdx.x + i / p.topk * gridDim.x, k = i % p.topk;
        auto rows = at<const int32_t>(p.token_rows) + static_cast<size_t>(t) * p.group.num_ranks;
        float v[kMaxRanks];
#pragma unroll
        for (int d = 0; d < kMaxRanks; ++d) {
            int32_t row = d < p.group.num_ranks ? rows[d] : -1;
            bool sent = row >= 0 && row < shared.num_rows[d];
            size_t i = sent ? static_cast<size_t>(row) * shared.weights_stride[d] + k : 0;
            v[d] = sent ? at<const float>(shared.weights_base[d])[i] : 0;
        }
        float sum = 0;
#pragma unroll
        for (int d = 0; d < kMaxRanks; ++d) sum += v[d];
        at<float>(p.out_weights)[static_cast<size_t>(t) * p.topk + k] = sum;
    }
}

// The consumer warps: vectors consumer, consumer + num_consumers, ... of each chunk, kRowBatch rows at a time.
__device__ inline void sum_chunks(const CombineParams& p, CombineShared& shared, const uint8_t* slots) {
    uint32_t consumer = threadIdx.x - kServiceWarps * 32, num_consumers = blockDim.x - kServiceWarps * 32;
    uint32_t num_slots = p.num_slots, slot = 0, round = 0;
    int row_vectors = p.hidden / 8, chunk_vectors = p.chunk_bytes / 16;
    for (;;) {
        barrier_wait(&shared.full[slot], round & 1);
        SlotInfo info = shared.info[slot];
        if (info.token < 0) return;
        uint32_t first_vector = info.chunk * chunk_vectors;
        uint32_t num_vectors = min(chunk_vectors, row_vectors - first_vector);
        uint4 bias[2][kVectors];
        float sum[kVectors][8] = {};
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
#pragma unroll
            for (int b = 0; b < 2; ++b)  // asked for early, added last
                if (p.bias[b] && consumer + v * num_consumers < num_vectors)
                    bias[b][v] = load_vector(p.bias[b] + info.token * p.bias_stride[b] +
                                             (first_vector + consumer + v * num_consumers) * 16);
        int left = info.num_rows;
        do {
            uint4 rows[kRowBatch][kVectors];
            uint32_t batch = max(1, min(left, kRowBatch)), first = slot;
#pragma unroll
            for (uint32_t j = 0; j < kRowBatch; ++j) {
                if (j >= batch) continue;
                barrier_wait(&shared.full[slot], round & 1);
                auto chunk = reinterpret_cast<const uint4*>(slots + slot * p.chunk_bytes);
#pragma unroll
                for (int v = 0; v < kVectors; ++v)
                    if (consumer + v * num_consumers < num_vectors && left > 0)
                        rows[j][v] = chunk[consumer + v * num_consumers];
                if (++slot == num_slots) slot = 0, ++round;
            }
#pragma unroll
            for (int j = 0; j < kRowBatch; ++j)
#pragma unroll
                for (int v = 0; v < kVectors; ++v)
                    if (j < left) add_vector(sum[v], rows[j][v]);
            fence_async_proxy_shared();  // read by ordinary loads, overwritten by the copy engine
            for (uint32_t j = 0, s = first; j < batch; ++j, s = s + 1 == num_slots ? 0 : s + 1)
                barrier_arrive(&shared.empty[s]);  // release, by each reader for itself; pairs with load_chunks
            left -= kRowBatch;
        } while (left > 0);
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            uint32_t c = consumer + v * num_consumers;
            if (c >= num_vectors) continue;
            if (p.bias[0]) add_vector(sum[v], bias[0][v]);
            if (p.bias[1]) add_vector(sum[v], bias[1][v]);
            store_vector(p.out + info.token * p.out_stride + (first_vector + c) * 16, round_vector(sum[v]));
        }
    }
}

extern "C" __global__ void __launch_bounds__(kMaxCombineThreads, 1)
    deepep_normal_combine(const __grid_constant__ CombineParams p) {
    extern __shared__ __align__(128) uint8_t slots[];
    __shared__ CombineShared shared;
    __shared__ HeaderTable table;
    LocalState* state = state_of(p.group);
    uint32_t epoch = state->epoch + 1;
    uint32_t num_consumers = blockDim.x - kServiceWarps * 32;
    for (int i = threadIdx.x; i < p.num_slots; i += blockDim.x) {
        barrier_init(&shared.full[i], 1);
        barrier_init(&shared.empty[i], num_consumers);
        barrier_init_fence();
    }
    if (blockIdx.x == 0) announce_combine(p, epoch, table);
    bool ok = judge_combine(p, epoch, table, shared);
    if (ok) {
        int warp = threadIdx.x / 32;
        if (warp == 0) {
            fence_async_proxy();  // rows that peers wrote by ordinary stores, now loaded by the copy engine
            load_chunks(p, shared, slots, epoch);
        } else if (warp == 1) {
            if (p.topk > 0 && p.out_weights) sum_weights(p, shared);
        } else {
            sum_chunks(p, shared, slots);
        }
    }
    if (arrive_last(&state->exit_arrivals)) finish_call(p.group, epoch, ok);
}

}  // namespace deepep::normal
