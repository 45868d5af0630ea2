// Threads that run blocks, one each at a time. There are as many as blocks ever ran side by side.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "grid.h"
#include "races.h"

namespace deepep::emulator {

namespace {

struct Latch {
    std::mutex mutex;
    std::condition_variable changed;
    uint32_t num_left;
    bool ok = true;
};

class Worker {
  public:
    void give(const Grid* grid, uint32_t block, Latch* latch) {
        std::lock_guard lock(mutex_);
        grid_ = grid, block_ = block, latch_ = latch;
        changed_.notify_one();
    }

    void run();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    const Grid* grid_ = nullptr;
    uint32_t block_;
    Latch* latch_;
    Stacks stacks_;
};

std::mutex mutex;
auto& idle = *new std::vector<Worker*>;

void start(const Grid* grid, uint32_t block, Latch* latch) {
    Worker* worker = nullptr;
    {
        std::lock_guard lock(mutex);
        if (!idle.empty()) {
            worker = idle.back();
            idle.pop_back();
        }
    }
    if (!worker) {
        worker = new Worker;
        std::thread([worker] { worker->run(); }).detach();
    }
    worker->give(grid, block, latch);
}

void Worker::run() {
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return grid_ != nullptr; });
        }
        bool ok = run_block(*grid_, block_, stacks_);
        Latch* latch = latch_;
        grid_ = nullptr;
        {
            std::lock_guard lock(mutex);
            idle.push_back(this);
        }
        std::lock_guard lock(latch->mutex);
        latch->ok &= ok;
        if (--latch->num_left == 0) latch->changed.notify_one();
    }
}

}  // namespace

bool run_grid(const Grid& given) {
    Grid grid = given;
    LaunchOrder order;
    if (races::on) races::begin(order, grid.early), grid.order = &order;
    Latch latch;
    latch.num_left = grid.num_blocks();
    for (uint32_t i = 0; i < grid.num_blocks(); ++i) start(&grid, i, &latch);
    std::unique_lock lock(latch.mutex);
    latch.changed.wait(lock, [&] { return latch.num_left == 0; });
    if (races::on) races::end(order);
    return latch.ok;
}

}  // namespace deepep::emulator
