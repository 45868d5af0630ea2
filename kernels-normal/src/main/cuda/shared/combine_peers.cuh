// Where the ranks of a node offer the rows that combine pulls.
#pragma once

#include "exchange.cuh"
#include "normal_params.cuh"

namespace deepep::normal {

// What a combining rank says of the rows it offers: words of its header.
__device__ __forceinline__ int32_t offer_word(const CombineParams& p, int word) {
    switch (word) {
        case kRowLimit: return p.num_rows;
        case kXLow: return static_cast<int32_t>(p.x);
        case kXHigh: return static_cast<int32_t>(p.x >> 32);
        case kXStride: return static_cast<int32_t>(p.x_stride);
        case kXAbsolute: return p.x_absolute;
        case kWeightsLow: return static_cast<int32_t>(p.weights);
        case kWeightsHigh: return static_cast<int32_t>(p.weights >> 32);
        case kWeightsStride: return static_cast<int32_t>(p.weights_stride);
        default: return 0;
    }
}

struct PeerRows {
    uint64_t x_base[kMaxRanks];
    uint64_t weights_base[kMaxRanks];
    int32_t x_stride[kMaxRanks];
    int32_t weights_stride[kMaxRanks];
    int32_t num_rows[kMaxRanks];

    // From the header of rank d of the node; word(i) is its i-th word.
    template <class Word>
    __device__ void learn(const Group& g, int d, Word word) {
        auto offset = [&](int low) {
            return static_cast<uint64_t>(static_cast<uint32_t>(word(low + 1))) << 32 | static_cast<uint32_t>(word(low));
        };
        x_base[d] = word(kXAbsolute) ? offset(kXLow) : g.heap[d] + offset(kXLow);
        weights_base[d] = g.heap[d] + offset(kWeightsLow);
        x_stride[d] = word(kXStride);
        weights_stride[d] = word(kWeightsStride);
        num_rows[d] = word(kRowLimit);
    }

    // The k-th weight of a token, summed in order of the ranks that have a row of it.
    __device__ float sum_weights(const int32_t* rows, int num_ranks, int k) const {
        float sum = 0;
        if constexpr (kIsWide) {
            for (int d = 0; d < num_ranks; ++d) {
                int32_t row = rows[d];
                if (row < 0 || row >= num_rows[d]) continue;
                sum += at<const float>(weights_base[d])[static_cast<size_t>(row) * weights_stride[d] + k];
            }
        } else {
            float v[kMaxRanks];
#pragma unroll
            for (int d = 0; d < kMaxRanks; ++d) {
                int32_t row = d < num_ranks ? rows[d] : -1;
                bool sent = row >= 0 && row < num_rows[d];
                size_t i = sent ? static_cast<size_t>(row) * weights_stride[d] + k : 0;
                v[d] = sent ? at<const float>(weights_base[d])[i] : 0;
            }
#pragma unroll
            for (int d = 0; d < kMaxRanks; ++d) sum += v[d];
        }
        return sum;
    }
};

// Where a row at `rank` lies, from byte `begin` of it on.
__device__ __forceinline__ const uint8_t* peer_chunk(const PeerRows& peers, int rank, int32_t row, uint32_t begin) {
    return at<const uint8_t>(peers.x_base[rank] + begin, static_cast<uint64_t>(row) * peers.x_stride[rank]);
}

// A row of token t that `rank` should offer, or -1; one that it does not offer is a fault.
__device__ __forceinline__ int32_t checked_row(const Group& g, const PeerRows& peers, uint32_t epoch, int t, int rank,
                                               int32_t row) {
    if (row < 0 || row < peers.num_rows[rank]) return row;
    Fault fault;
    fault.code = kRowOutOfRange;
    fault.rank = g.first_rank + g.rank;
    fault.peer = g.first_rank + rank;
    fault.token = t;
    fault.expected = peers.num_rows[rank];
    fault.seen = row;
    record_fault(g, epoch, fault);
    return -1;
}

}  // namespace deepep::normal
