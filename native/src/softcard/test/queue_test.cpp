// The queues that a GPU would write, written by a CPU: made by commands, with a collapsed completion queue. A queue
// pair is connected to itself. Prints a line for each case; the exit status says whether all are well.
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../libs/devx.h"

namespace devx = card::devx;

namespace {

constexpr uint32_t kNumBlocks = 128;
constexpr size_t kBytes = 1 << 16;
constexpr auto kPatience = std::chrono::seconds(20);

struct Queue {
    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_mr* region = nullptr;
    uint8_t* memory = nullptr;
    uint8_t* blocks = nullptr;
    uint32_t* record = nullptr;
    mlx5_cqe64* completion = nullptr;
    mlx5dv_devx_uar* page = nullptr;
    mlx5dv_devx_obj* pair = nullptr;
    uint32_t number = 0;
    uint32_t written = 0;

    Queue();
    int change(devx::Opcode opcode);
    bool connect();
    uint8_t* next() { return blocks + written % kNumBlocks * MLX5_SEND_WQE_BB; }
    void control(uint32_t opcode, uint32_t num_segments, bool wants_completion);
    void remote(uint32_t at, uint64_t address, uint32_t key);
    void data(uint32_t at, uint64_t address, uint32_t key, uint32_t num_bytes);
    void ring(uint32_t num_blocks);
    bool await(uint32_t index);
    void put(uint64_t to, uint64_t from, uint32_t num_bytes, uint32_t key);
    uint8_t* segment(uint32_t at) { return blocks + (written * 4 + at) % (kNumBlocks * 4) * 16; }
};

template <typename T>
T* aligned(size_t count) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 4096, count * sizeof(T)) != 0) std::abort();
    std::memset(memory, 0, count * sizeof(T));
    return static_cast<T*>(memory);
}

Queue::Queue() {
    int num_devices = 0;
    ibv_device** devices = ibv_get_device_list(&num_devices);
    context = ibv_open_device(devices[0]);
    pd = ibv_alloc_pd(context);
    memory = aligned<uint8_t>(kBytes);
    region = (ibv_reg_mr)(pd, memory, kBytes,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    blocks = aligned<uint8_t>(kNumBlocks * MLX5_SEND_WQE_BB);
    record = aligned<uint32_t>(2);
    completion = aligned<mlx5_cqe64>(kNumBlocks);
    std::memset(completion, 0xff, sizeof(*completion));
    page = mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_NC);
    uint8_t in[512] = {}, out[16] = {};
    devx::set(in, devx::kOpcode, devx::kCreateCompletionQueue);
    devx::set(in, devx::kRingMemory,
              mlx5dv_devx_umem_reg(context, completion, kNumBlocks * sizeof(mlx5_cqe64), 0)->umem_id);
    devx::set(in, devx::kCollapsed, 1);
    devx::set(in, devx::kLogCompletions, 7);
    mlx5dv_devx_obj_create(context, in, sizeof(in), out, sizeof(out));
    uint64_t completions = devx::get(out, devx::kNumberOut);
    mlx5dv_pd domain{};
    mlx5dv_obj object{};
    object.pd.in = pd;
    object.pd.out = &domain;
    mlx5dv_init_obj(&object, MLX5DV_OBJ_PD);
    std::memset(in, 0, sizeof(in));
    devx::set(in, devx::kOpcode, devx::kCreateQueuePair);
    devx::set(in, devx::kEntriesMemory,
              mlx5dv_devx_umem_reg(context, blocks, kNumBlocks * MLX5_SEND_WQE_BB, 0)->umem_id);
    devx::set(in, devx::kRecordMemory, mlx5dv_devx_umem_reg(context, record, 8, 0)->umem_id);
    devx::set(in, devx::kDomain, domain.pdn);
    devx::set(in, devx::kSendCompletions, completions);
    devx::set(in, devx::kLogEntries, 7);
    pair = mlx5dv_devx_obj_create(context, in, sizeof(in), out, sizeof(out));
    number = static_cast<uint32_t>(devx::get(out, devx::kNumberOut));
}

int Queue::change(devx::Opcode opcode) {
    uint8_t in[512] = {}, out[16] = {};
    devx::set(in, devx::kOpcode, opcode);
    devx::set(in, devx::kPeer, number);
    devx::set(in, devx::kWriteAccess, 1);
    devx::set(in, devx::kAtomicAccess, 1);
    return mlx5dv_devx_obj_modify(pair, in, sizeof(in), out, sizeof(out));
}

bool Queue::connect() {
    return change(devx::kResetToInit) == 0 && change(devx::kInitToReceive) == 0 && change(devx::kReceiveToSend) == 0;
}

void Queue::control(uint32_t opcode, uint32_t num_segments, bool wants_completion) {
    mlx5_wqe_ctrl_seg segment{};
    segment.opmod_idx_opcode = htobe32(opcode | (written & 0xffff) << 8);
    segment.qpn_ds = htobe32(number << 8 | num_segments);
    segment.fm_ce_se = wants_completion ? MLX5_WQE_CTRL_CQ_UPDATE : 0;
    std::memcpy(next(), &segment, sizeof(segment));
}

void Queue::remote(uint32_t at, uint64_t address, uint32_t key) {
    mlx5_wqe_raddr_seg remote{};
    remote.raddr = htobe64(address);
    remote.rkey = htobe32(key);
    std::memcpy(segment(at), &remote, sizeof(remote));
}

void Queue::data(uint32_t at, uint64_t address, uint32_t key, uint32_t num_bytes) {
    mlx5_wqe_data_seg data{};
    data.addr = htobe64(address);
    data.lkey = htobe32(key);
    data.byte_count = htobe32(num_bytes);
    std::memcpy(segment(at), &data, sizeof(data));
}

void Queue::ring(uint32_t num_blocks) {
    written += num_blocks;
    __atomic_store_n(record + 1, htobe32(written & 0xffff), __ATOMIC_RELEASE);
    uint64_t doorbell = htobe64(static_cast<uint64_t>((written & 0xffff) << 8) << 32 | number << 8);
    __atomic_store_n(static_cast<uint64_t*>(page->reg_addr), doorbell, __ATOMIC_RELEASE);
}

// Until the completion of the entry whose first block is `index`, or an error.
bool Queue::await(uint32_t index) {
    auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
        uint32_t word = __atomic_load_n(reinterpret_cast<uint32_t*>(&completion->wqe_counter), __ATOMIC_ACQUIRE);
        uint8_t kind = static_cast<uint8_t>(word >> 24) >> 4;
        if (kind == MLX5_CQE_REQ_ERR) return false;
        if (kind == MLX5_CQE_REQ && be16toh(static_cast<uint16_t>(word)) == (index & 0xffff)) return true;
    }
    return false;
}

void Queue::put(uint64_t to, uint64_t from, uint32_t num_bytes, uint32_t key) {
    control(MLX5_OPCODE_RDMA_WRITE, 3, true);
    remote(1, to, key);
    data(2, from, region->lkey, num_bytes);
    ring(1);
}

uint64_t at(const Queue& queue, size_t offset) { return reinterpret_cast<uint64_t>(queue.memory) + offset; }

bool states() {
    Queue queue;
    return queue.change(devx::kReceiveToSend) != 0 && queue.change(devx::kInitToReceive) != 0 && queue.connect() &&
           queue.change(devx::kInitToReceive) != 0;
}

// More entries than 16 bits count.
bool wraps() {
    Queue queue;
    if (!queue.connect()) return false;
    for (uint32_t i = 0; i < 70'000; i++) {
        uint64_t value = i * 3ull + 1;
        std::memcpy(queue.memory + i % 64 * 8, &value, sizeof(value));
        uint32_t index = queue.written;
        queue.put(at(queue, 4096 + i % 64 * 8), at(queue, i % 64 * 8), 8, queue.region->rkey);
        if (i % 64 != 63) continue;
        if (!queue.await(index) || std::memcmp(queue.memory, queue.memory + 4096, 512) != 0) return false;
    }
    return true;
}

// A masked swap of 8 bytes takes two blocks, the second at the beginning of the ring.
bool swap_across_the_end() {
    Queue queue;
    if (!queue.connect()) return false;
    while (queue.written % kNumBlocks != kNumBlocks - 1) {
        uint32_t index = queue.written;
        queue.put(at(queue, 4096), at(queue, 0), 8, queue.region->rkey);
        if (!queue.await(index)) return false;
    }
    uint64_t before = 0x1122334455667788, values[2] = {htobe64(0xaabb), 0}, masks[2] = {htobe64(0xffff), 0}, after, old;
    std::memcpy(queue.memory + 8192, &before, sizeof(before));
    queue.control(MLX5_OPCODE_ATOMIC_MASKED_CS | 0x09u << 24, 5, true);
    queue.remote(1, at(queue, 8192), queue.region->rkey);
    std::memcpy(queue.segment(2), values, sizeof(values));
    std::memcpy(queue.segment(3), masks, sizeof(masks));
    queue.data(4, at(queue, 64), queue.region->lkey, 8);
    uint32_t index = queue.written;
    queue.ring(2);
    if (!queue.await(index)) return false;
    std::memcpy(&after, queue.memory + 8192, sizeof(after));
    std::memcpy(&old, queue.memory + 64, sizeof(old));
    return after == 0x112233445566aabb && old == before;
}

bool fails_with(Queue& queue, uint8_t syndrome) {
    bool failed = !queue.await(queue.written - 1);
    return failed && reinterpret_cast<mlx5_err_cqe*>(queue.completion)->syndrome == syndrome;
}

bool keys() {
    Queue wrong_key, beyond, foreign;
    if (!wrong_key.connect() || !beyond.connect() || !foreign.connect()) return false;
    wrong_key.put(at(wrong_key, 0), at(wrong_key, 64), 8, wrong_key.region->rkey + 1);
    beyond.put(at(beyond, kBytes - 4), at(beyond, 0), 8, beyond.region->rkey);
    // Memory of another protection domain.
    foreign.put(at(beyond, 0), at(foreign, 0), 8, beyond.region->rkey);
    return fails_with(wrong_key, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR) &&
           fails_with(beyond, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR) &&
           fails_with(foreign, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
}

// An entry that says another number than its place has, as one that was not written in time would.
bool stale_entry() {
    Queue queue;
    if (!queue.connect()) return false;
    queue.control(MLX5_OPCODE_NOP, 1, true);
    queue.written++;
    queue.ring(1);
    return fails_with(queue, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR) || fails_with(queue, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
}

}  // namespace

int main() {
    struct {
        const char* name;
        bool (*run)();
    } cases[] = {{"states", states}, {"wraps", wraps}, {"swap across the end", swap_across_the_end},
                 {"keys", keys}, {"stale entry", stale_entry}};
    int failed = 0;
    for (auto& [name, run] : cases) {
        bool ok = run();
        std::printf("%s %s\n", ok ? "ok" : "FAILED", name);
        failed += ok ? 0 : 1;
    }
    std::fflush(stdout);
    return failed;
}
