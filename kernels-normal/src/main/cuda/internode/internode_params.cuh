// What the kernels across nodes share besides their structs: rows of a token by node.
#pragma once

#include <type_traits>

#include "../shared/normal_params.cuh"
#include "deepep/network.cuh"

#ifdef DEEPEP_NORMAL_WIDE
#include "internode_wide_structs.cuh"
#else
#include "internode_structs.cuh"
#endif

namespace deepep::normal {

// Rows of a token at the ranks of one node, -1 where it does not go. In memory there are node_places of them, those
// past the node's ranks -1.
struct alignas(16) NodeRows {
    int32_t row[kMaxRanks];
};

// Small nodes have all the same; large ones as many as they have ranks, rounded up to a multiple of 4.
__device__ __forceinline__ int node_places(const Internode& b) { return kIsWide ? b.node_places : kMaxRanks; }

__device__ __forceinline__ int node_rows_bytes(const Internode& b) {
    return node_places(b) * static_cast<int>(sizeof(int32_t));
}

// The place of a rank among those of all nodes.
__device__ __forceinline__ int place_of(const Group& g, const Internode& b, int rank) {
    return rank / g.num_ranks * node_places(b) + rank % g.num_ranks;
}

// The rows of the i-th token from that of `rows` on.
__device__ __forceinline__ NodeRows* rows_of_token(const Internode& b, NodeRows* rows, size_t i) {
    return kIsWide ? at<NodeRows>(reinterpret_cast<uint64_t>(rows), i * node_rows_bytes(b)) : rows + i;
}

// In an array [num_nodes][num_tokens].
__device__ __forceinline__ NodeRows* node_rows(const Internode& b, uint64_t rows, int num_tokens, int node, int t) {
    return rows_of_token(b, at<NodeRows>(rows), static_cast<size_t>(node) * num_tokens + t);
}

// The rows of a small node as they are loaded, to be looked at when they are there.
struct FewRows {
    int4 low, high;

    // rank: of the node, if its row alone is wanted; else -1.
    static __device__ FewRows load(const Internode&, const NodeRows* rows, int) {
        auto words = reinterpret_cast<const int4*>(rows);
        return {words[0], words[1]};
    }
    // Four of them, the i-th; `rows` are where they were loaded from.
    __device__ int4 quad(const NodeRows*, int i) const { return i == 0 ? low : high; }
    static __device__ FewRows none() { return {make_int4(-1, -1, -1, -1), make_int4(-1, -1, -1, -1)}; }
    __device__ bool go_anywhere() const {  // not all -1
        return (low.x & low.y & low.z & low.w & high.x & high.y & high.z & high.w) >= 0;
    }
    __device__ int32_t row(int rank) const {
        int4 half = rank & 4 ? high : low;
        int32_t even = rank & 2 ? half.z : half.x, odd = rank & 2 ? half.w : half.y;
        return rank & 1 ? odd : even;
    }
};

// What is left of those of a large node, which are more than a lane has registers for.
struct ManyRows {
    int32_t all;

    static __device__ ManyRows load(const Internode& b, const NodeRows* rows, int rank) {
        if (rank >= 0) return {rows->row[rank]};
        auto words = reinterpret_cast<const int4*>(rows);
        int32_t all = -1;
        for (int i = 0; i < b.node_places / 4; ++i) all &= words[i].x & words[i].y & words[i].z & words[i].w;
        return {all};
    }
    static __device__ int4 quad(const NodeRows* rows, int i) { return reinterpret_cast<const int4*>(rows)[i]; }
    static __device__ ManyRows none() { return {-1}; }
    __device__ bool go_anywhere() const { return all >= 0; }
    __device__ int32_t row(int) const { return all; }
};

using LoadedRows = std::conditional_t<kIsWide, ManyRows, FewRows>;

__device__ __forceinline__ LoadedRows load_rows(const Internode& b, const NodeRows* rows, int rank = -1) {
    return LoadedRows::load(b, rows, rank);
}

__device__ __forceinline__ LoadedRows no_rows() { return LoadedRows::none(); }

}  // namespace deepep::normal
