// Which rows a launch before a combine brings into the heap: never one past the end of x. A replayed graph has the x of
// its capture, and a dispatch since may have brought more rows.
#pragma once

#include "normal_params.cuh"

namespace deepep::normal {

__device__ __forceinline__ int num_staged_rows(const StageParams& p) {
    int num_rows = *at<const int32_t>(p.num_rows);
    return p.expanded_rows ? num_rows : min(num_rows, p.x_rows);
}

// The expanded row of a received row's selection, or -1.
__device__ __forceinline__ int selected_row(const StageParams& p, int row, int k) {
    int selected = k < p.topk ? at<const int32_t>(p.expanded_rows)[static_cast<size_t>(row) * p.topk + k] : -1;
    return selected < p.x_rows ? selected : -1;
}

}  // namespace deepep::normal
