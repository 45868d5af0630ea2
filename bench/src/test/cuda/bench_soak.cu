// Exchanges of low-latency mode that check themselves on the GPU: everything that a rank sends follows from the seed of
// the exchange by arithmetic, so every receiver can tell what it must get.
//
// One kernel for three steps, each its own launch on the rank's stream: before the dispatch it writes tokens,
// selections and weights; before the combine it compares what was received and writes the experts' outputs; after it,
// it compares the sums. All numbers are exact in every format: a token's group of channels has 448 in front, so its
// scale is 1, and integers up to 16 behind; outputs are integers up to 8 and weights powers of two.
//
// A rank with -1 tokens is masked: nothing comes from it, and sums lack what its experts would have added.
//
// Reads and writes this rank's memory alone. Launch: any number of blocks of kSoakThreads threads, no shared memory.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "deepep/memory.cuh"
#include "soak_structs.cuh"

namespace deepep::bench {

constexpr int kGroupChannels = 128;

enum Step : int { kPrepare = 0, kCheckDispatch = 1, kCheckCombine = 2 };

enum What : int { kRange = 1, kSource = 2, kRow = 3, kCount = 4, kSum = 5 };

__device__ __forceinline__ uint32_t hash(uint64_t seed, uint32_t a, uint32_t b) {
    uint64_t z = seed + 0x9e3779b97f4a7c15ull * (static_cast<uint64_t>(a) << 32 | b);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return static_cast<uint32_t>(z >> 32);
}

// -1 for one selection in 16. A token's selections are of different parts of the experts, so that it names none twice.
__device__ __forceinline__ int expert_of(const SoakParams& p, int rank, int token, int k) {
    uint32_t h = hash(p.seed, rank << 16 | token, k);
    int per_part = p.num_experts / p.topk, part = (k + token) % p.topk;
    return h % 16 == 0 ? -1 : part * per_part + static_cast<int>(h / 16 % static_cast<uint32_t>(per_part));
}

__device__ __forceinline__ float weight_of(const SoakParams& p, int rank, int token, int k) {
    return 1.0f / (1 << hash(p.seed + 1, rank << 16 | token, k) % 4);
}

__device__ __forceinline__ float channel_of(const SoakParams& p, int rank, int token, int channel) {
    if (channel % kGroupChannels == 0) return 448;
    return static_cast<int>(hash(p.seed + 2, rank << 16 | token, channel) % 33) - 16;
}

__device__ __forceinline__ float output_of(const SoakParams& p, int expert, int rank, int token, int channel) {
    return static_cast<int>(hash(p.seed + 3 + expert, rank << 16 | token, channel) % 17) - 8;
}

// The first complaint is kept: what, and where.
__device__ __forceinline__ void complain(const SoakParams& p, What what, int first, int second, int third) {
    auto errors = at<unsigned long long>(p.errors);
    if (atomicAdd_system(errors, 1) != 0) return;
    errors[1] = p.exchange;
    errors[2] = what;
    errors[3] = first;
    errors[4] = second;
    errors[5] = third;
}

__device__ void prepare(const SoakParams& p, int warp, int num_warps, int lane) {
    for (int t = warp; t < p.num_tokens[p.rank]; t += num_warps) {
        for (int k = lane; k < p.topk; k += 32) {
            at<int64_t>(p.topk_idx)[t * p.topk + k] = expert_of(p, p.rank, t, k);
            at<float>(p.topk_weights)[t * p.topk + k] = weight_of(p, p.rank, t, k);
        }
        for (int c = lane; c < p.hidden; c += 32)
            at<__nv_bfloat16>(p.x)[t * p.hidden + c] = __float2bfloat16(channel_of(p, p.rank, t, c));
    }
}

__device__ __forceinline__ float scale_of(const SoakParams& p, int expert, int row, int channel) {
    int64_t slots = p.num_ranks * p.max_tokens;
    int group = channel / kGroupChannels, groups = p.hidden / kGroupChannels;
    if (p.format == kPackedScales) {
        uint32_t packed = at<uint32_t>(p.recv_scales)[(expert * ((groups + 3) / 4) + group / 4) * slots + row];
        return __uint_as_float((packed >> group % 4 * 8 & 255) << 23);
    }
    return at<float>(p.recv_scales)[(static_cast<int64_t>(expert) * groups + group) * slots + row];
}

__device__ void check_row(const SoakParams& p, int expert, int row, int source, int token, int lane) {
    int64_t slots = p.num_ranks * p.max_tokens, first = (expert * slots + row) * p.hidden;
    int global = p.rank * (p.num_experts / p.num_ranks) + expert;
    for (int c = lane; c < p.hidden; c += 32) {
        float seen;
        if (p.format == kNoScales) {
            seen = __bfloat162float(at<__nv_bfloat16>(p.recv_x)[first + c]);
        } else {
            seen = static_cast<float>(at<__nv_fp8_e4m3>(p.recv_x)[first + c]) * scale_of(p, expert, row, c);
        }
        if (!(fabsf(seen - channel_of(p, source, token, c)) < 1e-3f)) complain(p, kRow, expert, row, c);
        at<__nv_bfloat16>(p.outputs)[first + c] = __float2bfloat16(output_of(p, global, source, token, c));
    }
}

// A warp for each source and local expert: the source's selections of the expert lie in the order of its tokens.
__device__ void check_dispatch(const SoakParams& p, int warp, int num_warps, int lane) {
    int num_local = p.num_experts / p.num_ranks;
    for (int i = warp; i < num_local * p.num_ranks; i += num_warps) {
        int expert = i / p.num_ranks, source = i % p.num_ranks;
        int begin = 0;
        for (int s = 0; s < source; ++s) begin += at<int64_t>(p.layout_range)[expert * p.num_ranks + s] & 0xffffffff;
        int row = begin;
        for (int base = 0; base < p.num_tokens[source] * p.topk; base += 32) {
            int token = (base + lane) / p.topk, k = (base + lane) % p.topk;
            bool mine = token < p.num_tokens[source] && expert_of(p, source, token, k) == p.rank * num_local + expert;
            for (uint32_t left = __ballot_sync(~0u, mine); left != 0; left &= left - 1, ++row) {
                int t = __shfl_sync(~0u, token, __ffs(left) - 1);
                int seen = at<int32_t>(p.src_info)[static_cast<int64_t>(expert) * p.num_ranks * p.max_tokens + row];
                if (seen != t) complain(p, kSource, expert, row, seen);
                check_row(p, expert, row, source, t, lane);
            }
        }
        if (lane != 0) continue;
        int64_t range = at<int64_t>(p.layout_range)[expert * p.num_ranks + source];
        if (static_cast<int>(range) != row - begin || range >> 32 != begin)
            complain(p, kRange, expert, source, row - begin);
        if (source == p.num_ranks - 1 && at<int32_t>(p.counts)[expert] != row) complain(p, kCount, expert, source, row);
    }
}

__device__ void check_combine(const SoakParams& p, int warp, int num_warps, int lane) {
    for (int t = warp; t < p.num_tokens[p.rank]; t += num_warps)
        for (int c = lane; c < p.hidden; c += 32) {
            float expected = 0;
            for (int k = 0; k < p.topk; ++k) {
                int expert = expert_of(p, p.rank, t, k);
                bool comes_back = expert >= 0 && p.num_tokens[expert / (p.num_experts / p.num_ranks)] >= 0;
                if (comes_back) expected += weight_of(p, p.rank, t, k) * output_of(p, expert, p.rank, t, c);
            }
            float seen = __bfloat162float(at<__nv_bfloat16>(p.combined)[t * p.hidden + c]);
            if (seen != expected) complain(p, kSum, t, c, __float_as_int(seen));
        }
}

extern "C" __global__ void __launch_bounds__(kSoakThreads) deepep_bench_soak(const __grid_constant__ SoakParams p) {
    int lane = threadIdx.x % 32, warp = blockIdx.x * (kSoakThreads / 32) + threadIdx.x / 32;
    int num_warps = gridDim.x * (kSoakThreads / 32);
    switch (p.step) {
        case kPrepare: prepare(p, warp, num_warps, lane); break;
        case kCheckDispatch: check_dispatch(p, warp, num_warps, lane); break;
        case kCheckCombine: check_combine(p, warp, num_warps, lane); break;
    }
}

}  // namespace deepep::bench
