// Kernels of the test that calls run beside an engine's kernels. The test runs the PTX beside the test resources, so
// that it needs no nvcc: nvcc -ptx -arch=compute_80 overlap_checks.cu, then `.version 8.0` for older drivers.

// In mapped host memory.
struct Report {
    unsigned long long stop;     // written by whoever wants the multiplication to end
    unsigned long long running;  // blocks that have begun
    unsigned long long begin_ns, end_ns;
    unsigned long long gave_up;  // blocks that nobody stopped in time
};

constexpr int kTile = 16;

static __device__ unsigned long long now_ns() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

// Any number of blocks of kTile x kTile threads: each multiplies a [k][kTile] strip by a [kTile][k] strip, as a GEMM
// does, over and over until report->stop is 1. c: [blocks][kTile][kTile].
extern "C" __global__ void multiply_until(const float* a, const float* b, float* c, int k, volatile Report* report,
                                          unsigned long long timeout_ns) {
    __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
    __shared__ bool stopped, late;
    int x = threadIdx.x, y = threadIdx.y;
    bool first = x == 0 && y == 0;
    unsigned long long begin = now_ns();
    if (first) {
        if (blockIdx.x == 0) report->begin_ns = begin;
        __threadfence_system();
        atomicAdd_system(const_cast<unsigned long long*>(&report->running), 1ull);
    }
    float sum = 0;
    do {
        for (int i = 0; i < k; i += kTile) {
            tile_a[y][x] = a[(i + x) * kTile + y];
            tile_b[y][x] = b[(i + y) * kTile + x];
            __syncthreads();
            for (int j = 0; j < kTile; ++j) sum += tile_a[y][j] * tile_b[j][x];
            __syncthreads();
        }
        if (first) {
            stopped = report->stop == 1;
            late = now_ns() - begin > timeout_ns;
        }
        __syncthreads();
    } while (!stopped && !late);
    c[(blockIdx.x * kTile + y) * kTile + x] = sum;
    if (first && !stopped) atomicAdd_system(const_cast<unsigned long long*>(&report->gave_up), 1ull);
    if (first && blockIdx.x == 0) report->end_ns = now_ns();
}

// One thread.
extern "C" __global__ void stamp(volatile unsigned long long* ns) { *ns = now_ns(); }
