// Kernels of the tests of the CUDA bindings. The tests run the PTX beside the test resources, so they need no nvcc:
//   nvcc -ptx -arch=compute_80 driver_checks.cu, then `.version 8.0` for older drivers.

struct EchoParams {
    long long* out;
    int small;
    float real;
    long long large;
};

// What a header of Java's would have set; the test puts the right value here, or leaves the wrong one.
extern "C" {
__device__ unsigned long long driver_checks_hash = 0x1234;
}

// Any launch shape; adds `value` to each of `n` words.
extern "C" __global__ void add_value(int* words, int n, int value) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) words[i] += value;
}

// One thread; writes the fields it was given.
extern "C" __global__ void echo(const EchoParams params) {
    params.out[0] = params.small;
    params.out[1] = static_cast<long long>(params.real * 4.0f);
    params.out[2] = params.large;
}

// One block; its dynamic shared memory holds the words while they are reversed: proves that the launch got `n` words
// of it.
extern "C" __global__ void reverse(int* words, int n) {
    extern __shared__ int shared[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) shared[i] = words[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) words[i] = shared[n - 1 - i];
}

// One thread; stores to any address.
extern "C" __global__ void poke(int* target, int value) { *target = value; }

// One thread; words[1] says how far it is: 1 waits for words[0] to become 1, 2 saw it, 3 gave up after timeout_ns.
extern "C" __global__ void hold(volatile int* words, long long timeout_ns) {
    long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    words[1] = 1;
    do {
        if (words[0] == 1) {
            words[1] = 2;
            return;
        }
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < timeout_ns);
    words[1] = 3;
}
