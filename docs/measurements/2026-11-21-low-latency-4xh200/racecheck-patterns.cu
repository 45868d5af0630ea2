// What racecheck follows: kernels in which the second half of a block writes shared memory and the first half reads it.
// All but `race` are correct. Build, run, count:
//
//   nvcc -std=c++17 -O3 -arch=sm_90 -I native/src/main/cuda/include -o patterns racecheck-patterns.cu && ./patterns
//   compute-sanitizer --tool racecheck --racecheck-report analysis --log-file race.txt ./patterns
//   grep -oE 'access at [a-z0-9_]+|[0-9]+ hazards?\]' race.txt
#include <cstdio>

#include "deepep/block.cuh"

using namespace deepep;

constexpr int kBlocks = 8, kRounds = 4;

__device__ void store_release(uint32_t* p, uint32_t v) {
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(shared_address(p)), "r"(v) : "memory");
}

__device__ uint32_t load_acquire(const uint32_t* p) {
    uint32_t v;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared_address(p)) : "memory");
    return v;
}

// The writers meet, twice, as a team of T / 2.
template <int T>
__device__ __forceinline__ void team_meets_twice(int barrier) {
    team_barrier(barrier, T / 2);
    team_barrier(barrier, T / 2);
}

// The body returns what its thread has seen; the host expects `round` of all.
#define PATTERN(name, ...)                                                                                          \
    template <int T>                                                                                                \
    __device__ __forceinline__ uint32_t name##_body(volatile uint32_t* table, volatile uint32_t& plan,              \
                                                    uint32_t* flag, uint64_t* barrier, uint32_t round) {            \
        [[maybe_unused]] int half = T / 2, thread = threadIdx.x, mine = thread % half;                              \
        [[maybe_unused]] bool reads = thread < half, writes = thread == half;                                       \
        __VA_ARGS__                                                                                                 \
    }                                                                                                               \
    template <int T>                                                                                                \
    __device__ __forceinline__ void name##_block(uint32_t* out, uint32_t round) {                                   \
        __shared__ uint32_t table[T / 2], plan, flag;                                                               \
        __shared__ uint64_t barrier;                                                                                \
        out[blockIdx.x * T + threadIdx.x] = name##_body<T>(table, plan, &flag, &barrier, round);                    \
    }                                                                                                               \
    extern "C" __global__ void name##_128(uint32_t* out, uint32_t round) { name##_block<128>(out, round); }         \
    extern "C" __global__ void name##_1024(uint32_t* out, uint32_t round) { name##_block<1024>(out, round); }

PATTERN(race, if (writes) plan = round; return reads ? plan : round;)
PATTERN(meet, if (writes) plan = round; __syncthreads(); return plan;)

// The writers have met as a team before; the readers have not.
PATTERN(team_then_meet, if (!reads) { team_meets_twice<T>(4); if (writes) plan = round; } __syncthreads(); return plan;)
PATTERN(team_then_meet_twice, if (!reads) { team_meets_twice<T>(4); if (writes) plan = round; } __syncthreads();
        __syncthreads(); return plan;)
PATTERN(teams_keep_step, team_meets_twice<T>(reads ? 5 : 4); if (writes) plan = round; __syncthreads(); return plan;)
PATTERN(team_around_write, if (!reads) { team_meets_twice<T>(4); if (writes) plan = round; team_barrier(4, half); }
        __syncthreads(); return plan;)
// Out of step once, then never again, but for the block's barrier.
PATTERN(meet_later, if (!reads) team_meets_twice<T>(4); __syncthreads(); if (writes) plan = round; __syncthreads();
        return plan;)

// A team that meets at an mbarrier.
PATTERN(team_by_mbarrier, if (thread == 0) barrier_init(barrier, half); __syncthreads();
        if (!reads) { barrier_arrive(barrier); barrier_wait(barrier, 0); if (writes) plan = round; }
        __syncthreads(); return plan;)

// All writers write, the readers look until it is done: behind an mbarrier at which all writers arrive, or one lane of
// each warp, or one thread after the writers have met; and behind a flag, which takes the tool long.
PATTERN(placed_all_arrive, if (thread == 0) barrier_init(barrier, half); __syncthreads();
        if (!reads) { team_barrier(4, half); table[mine] = round; barrier_arrive(barrier); return round; }
        while (!barrier_test(barrier, 0)) {} return table[half - 1 - mine];)
PATTERN(placed_warps_arrive, if (thread == 0) barrier_init(barrier, half / 32); __syncthreads();
        if (!reads) { team_barrier(4, half); table[mine] = round; __syncwarp();
            if (mine % 32 == 0) barrier_arrive(barrier); return round; }
        while (!barrier_test(barrier, 0)) {} return table[half - 1 - mine];)
PATTERN(placed_one_arrives, if (thread == 0) barrier_init(barrier, 1); __syncthreads();
        if (!reads) { table[mine] = round; team_barrier(4, half); if (writes) barrier_arrive(barrier); return round; }
        while (!barrier_test(barrier, 0)) {} return table[half - 1 - mine];)
PATTERN(placed_flag, if (thread == 0) *flag = 0; __syncthreads();
        if (!reads) { table[mine] = round; team_barrier(4, half); if (writes) store_release(flag, 1); return round; }
        while (load_acquire(flag) == 0) {} return table[half - 1 - mine];)

struct Pattern {
    const char* name;
    void (*small)(uint32_t*, uint32_t);
    void (*large)(uint32_t*, uint32_t);
};
#define P(name) {#name, name##_128, name##_1024},
const Pattern kPatterns[] = {P(race) P(meet) P(team_then_meet) P(team_then_meet_twice) P(teams_keep_step)
                             P(team_around_write) P(meet_later) P(team_by_mbarrier) P(placed_all_arrive)
                             P(placed_warps_arrive) P(placed_one_arrives) P(placed_flag)};

int main() {
    uint32_t* out;
    cudaMallocManaged(&out, kBlocks * 1024 * sizeof(uint32_t));
    for (const Pattern& pattern : kPatterns) {
        for (int threads : {128, 1024}) {
            int wrong = 0;
            for (uint32_t round = 1; round <= kRounds; ++round) {
                (threads == 128 ? pattern.small : pattern.large)<<<kBlocks, threads>>>(out, round);
                cudaError_t error = cudaDeviceSynchronize();
                if (error != cudaSuccess) {
                    printf("%s_%d: %s\n", pattern.name, threads, cudaGetErrorString(error));
                    return 1;
                }
                for (int i = 0; i < kBlocks * threads; ++i) wrong += out[i] != round;
            }
            printf("ran %s_%d wrong %d\n", pattern.name, threads, wrong);
            fflush(stdout);
        }
    }
}
