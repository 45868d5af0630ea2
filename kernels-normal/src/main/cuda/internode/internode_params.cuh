// What the kernels across nodes share besides their structs: rows of a token by node.
#pragma once

#include "../shared/normal_params.cuh"
#include "deepep/network.cuh"
#include "internode_structs.cuh"

namespace deepep::normal {

// Rows of a token at the ranks of one node, -1 where it does not go.
struct alignas(16) NodeRows {
    int32_t row[kMaxRanks];
};
static_assert(sizeof(NodeRows) == kNodeRowsBytes);

// In an array [num_nodes][num_tokens].
__device__ __forceinline__ NodeRows* node_rows(uint64_t rows, int num_tokens, int node, int t) {
    return at<NodeRows>(rows) + static_cast<size_t>(node) * num_tokens + t;
}

// Eight rows as they are loaded, to be looked at when they are there.
struct LoadedRows {
    int4 low, high;

    __device__ bool go_anywhere() const {  // not all -1
        return (low.x & low.y & low.z & low.w & high.x & high.y & high.z & high.w) >= 0;
    }
};

__device__ __forceinline__ LoadedRows load_rows(const NodeRows* rows) {
    auto v = reinterpret_cast<const int4*>(rows);
    return {v[0], v[1]};
}

__device__ __forceinline__ LoadedRows no_rows() { return {make_int4(-1, -1, -1, -1), make_int4(-1, -1, -1, -1)}; }

}  // namespace deepep::normal
