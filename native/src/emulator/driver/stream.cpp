// Streams, events and graphs. A stream is a thread that does its work in order.
#include "stream.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

using namespace deepep::emulator;

struct Graph {
    std::vector<Work> nodes;
};

struct GraphExec {
    std::shared_ptr<const std::vector<Work>> nodes;
};

namespace deepep::emulator {

namespace {

thread_local std::vector<std::shared_ptr<Capture>> captures;

}  // namespace

CUresult forbidden_in_captures() {
    for (auto& capture : captures) capture->valid = false;
    return captures.empty() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

Stream* stream_of(Stream* handle) {
    if (reinterpret_cast<uintptr_t>(handle) > 2) return handle;
    Context* context = current_context();
    std::lock_guard lock(context->mutex);
    if (!context->default_stream) {
        context->default_stream = new Stream{.context = context};
        context->streams.push_back(context->default_stream);
    }
    return context->default_stream;
}

void enqueue(Stream* stream, Work work) {
    std::lock_guard lock(stream->mutex);
    if (stream->capture) {
        stream->capture->nodes.push_back(std::move(work));
        stream->unjoined = stream != stream->capture->origin;
        return;
    }
    if (races::on) work.after = races::host();
    stream->queue.push_back(std::move(work));
    ++stream->num_enqueued;
    if (!stream->started) {
        stream->started = true;
        std::thread([stream] { stream->run(); }).detach();
    }
    stream->changed.notify_all();
}

}  // namespace deepep::emulator

void Stream::run() {
    races::stream = &order;
    std::unique_lock lock(mutex);
    for (;;) {
        changed.wait(lock, [this] { return destroyed || !queue.empty(); });
        if (queue.empty()) break;
        Work work = std::move(queue.front());
        queue.pop_front();
        lock.unlock();
        if (work.after) races::order_after(*work.after);
        if (!context->failed && !work.run()) context->failed = true;
        lock.lock();
        ++num_done;
        changed.notify_all();
    }
    lock.unlock();
    delete this;
}

void Stream::wait() {
    std::unique_lock lock(mutex);
    uint64_t target = num_enqueued;
    changed.wait(lock, [&] { return num_done >= target; });
}

bool Stream::is_idle() {
    std::lock_guard lock(mutex);
    return num_done == num_enqueued;
}

namespace {

constexpr int kExternal = 1;

int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

template <typename Done>
void wait_until(Done done) {
    for (int i = 0; !done(); ++i) {
        if (i < 16)
            sched_yield();
        else
            usleep(i < 200 ? 20 : 200);
    }
}

Work record(EventState* state) {
    uint64_t number = ++state->recorded;
    return {[state, number] {
        state->time_ns = now_ns();
        races::record(state->clock);
        uint64_t done = state->done;
        while (done < number && !state->done.compare_exchange_weak(done, number)) {
        }
        return true;
    }};
}

// In a graph: every launch is a record.
Work record_external(EventState* state) {
    return {nullptr, [state] { return record(state); }};
}

Work wait_for(Event* event) {
    EventState* state = event->state;
    uint64_t number = state->recorded;
    return {[state, number] {
        wait_until([&] { return state->done >= number; });
        races::order_after(state->clock);
        return true;
    }};
}

CUresult captured(const Event* event) { return event->captured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS; }

CUresult not_capturing(Stream* stream) {
    if (!stream->capture) return CUDA_SUCCESS;
    stream->capture->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

Work wait_value(CUdeviceptr address, uint32_t value) {
    return {[address, value] {
        wait_until([&] {
            uint32_t seen = __atomic_load_n(reinterpret_cast<uint32_t*>(address), __ATOMIC_ACQUIRE);
            return static_cast<int32_t>(seen - value) >= 0;
        });
        races::order_after_word(address);
        return true;
    }};
}

Work write_value(CUdeviceptr address, uint32_t value) {
    return {[address, value] {
        races::release_word(address);
        __atomic_store_n(reinterpret_cast<uint32_t*>(address), value, __ATOMIC_SEQ_CST);
        return true;
    }};
}

CUresult submit(Stream* stream, Work work) {
    stream = stream_of(stream);
    if (auto failed = status_of(stream->context)) return failed;
    if (stream->capture && !stream->capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    enqueue(stream, {[run = std::move(work.run)] {
        bool ok = run();
        races::boundary();
        return ok;
    }});
    return CUDA_SUCCESS;
}

}  // namespace

EMULATED cuStreamCreateWithPriority(Stream** stream, unsigned, int) {
    MAY_FAIL;
    if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
    Context* context = current_context();
    *stream = new Stream{.context = context};
    std::lock_guard lock(context->mutex);
    context->streams.push_back(*stream);
    return CUDA_SUCCESS;
}

EMULATED cuStreamDestroy_v2(Stream* stream) {
    {
        std::lock_guard lock(stream->context->mutex);
        auto& all = stream->context->streams;
        all.erase(std::remove(all.begin(), all.end(), stream), all.end());
    }
    std::unique_lock lock(stream->mutex);
    stream->destroyed = true;
    if (stream->started) {
        stream->changed.notify_all();
    } else {
        lock.unlock();
        delete stream;
    }
    return CUDA_SUCCESS;
}

EMULATED cuStreamGetCtx_v2(Stream* stream, Context** context, GreenContext** green) {
    *context = stream_of(stream)->context;
    return *green = stream_of(stream)->green, CUDA_SUCCESS;
}

EMULATED cuStreamSynchronize(Stream* stream) {
    MAY_FAIL;
    stream = stream_of(stream);
    if (auto forbidden = not_capturing(stream)) return forbidden;
    stream->wait();
    races::host_saw(stream->order.done);
    return status_of(stream->context);
}

EMULATED cuStreamQuery(Stream* stream) {
    stream = stream_of(stream);
    if (auto forbidden = not_capturing(stream)) return forbidden;
    if (auto failed = status_of(stream->context)) return failed;
    if (!stream->is_idle()) return CUDA_ERROR_NOT_READY;
    return races::host_saw(stream->order.done), CUDA_SUCCESS;
}

EMULATED cuCtxSynchronize() {
    MAY_FAIL;
    Context* context = current_context();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    std::vector<Stream*> all;
    {
        std::lock_guard lock(context->mutex);
        all = context->streams;
    }
    for (Stream* stream : all)
        if (!stream->capture) stream->wait(), races::host_saw(stream->order.done);
    return status_of(context);
}

// From host memory to host memory the calling thread waits, as CUDA documents.
EMULATED cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t num_bytes, Stream* stream) {
    MAY_FAIL;
    auto submitted = submit(stream, {[=] {
        memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), num_bytes);
        races::forget(to, num_bytes);
        return true;
    }});
    Stream* at = stream_of(stream);
    if (!submitted && !at->capture && is_host_memory(to) && is_host_memory(from)) {
        at->wait();
        races::host_saw(at->order.done);
    }
    return submitted;
}

EMULATED cuMemsetD8Async(CUdeviceptr to, uint8_t value, size_t num_bytes, Stream* stream) {
    MAY_FAIL;
    return submit(stream, {[=] {
        memset(reinterpret_cast<void*>(to), value, num_bytes);
        races::forget(to, num_bytes);
        return true;
    }});
}

EMULATED cuMemsetD32Async(CUdeviceptr to, uint32_t value, size_t num_words, Stream* stream) {
    MAY_FAIL;
    return submit(stream, {[=] {
        std::fill_n(reinterpret_cast<uint32_t*>(to), num_words, value);
        races::forget(to, 4 * num_words);
        return true;
    }});
}

EMULATED cuStreamWriteValue32_v2(Stream* stream, CUdeviceptr to, uint32_t value, unsigned) {
    MAY_FAIL;
    return submit(stream, write_value(to, value));
}

EMULATED cuStreamWaitValue32_v2(Stream* stream, CUdeviceptr address, uint32_t value, unsigned) {
    MAY_FAIL;
    return submit(stream, wait_value(address, value));
}

EMULATED cuEventCreate(Event** event, unsigned) {
    MAY_FAIL;
    return *event = new Event{.state = new EventState{}}, CUDA_SUCCESS;
}

// The state stays: work that was submitted may still name it.
EMULATED cuEventDestroy_v2(Event* event) { return delete event, CUDA_SUCCESS; }

EMULATED cuEventRecordWithFlags(Event* event, Stream* stream, unsigned flags) {
    MAY_FAIL;
    stream = stream_of(stream);
    if (auto failed = status_of(stream->context)) return failed;
    if (!stream->capture) {
        event->captured.reset();
        enqueue(stream, record(event->state));
    } else if (flags & kExternal) {
        enqueue(stream, record_external(event->state));
    } else {
        event->captured = stream->capture;
        event->captured_stream = stream;
    }
    return CUDA_SUCCESS;
}

EMULATED cuEventRecord(Event* event, Stream* stream) { return cuEventRecordWithFlags(event, stream, 0); }

EMULATED cuStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
    MAY_FAIL;
    stream = stream_of(stream);
    if (auto failed = status_of(stream->context)) return failed;
    if (!event->captured) {
        if (stream->capture && !(flags & kExternal)) {
            stream->capture->valid = false;
            return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        }
        enqueue(stream, wait_for(event));
        return CUDA_SUCCESS;
    }
    if (event->captured->ended) return CUDA_ERROR_CAPTURED_EVENT;
    if (stream->capture && stream->capture != event->captured) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    if (!stream->capture) {
        stream->capture = event->captured;
        stream->capture->streams.push_back(stream);
        stream->unjoined = true;
    }
    if (stream != event->captured_stream) event->captured_stream->unjoined = false;
    return CUDA_SUCCESS;
}

EMULATED cuEventQuery(Event* event) {
    if (auto forbidden = forbidden_in_captures()) return forbidden;
    if (auto status = captured(event)) return status;
    if (event->state->done < event->state->recorded) return CUDA_ERROR_NOT_READY;
    return races::host_saw(event->state->clock), CUDA_SUCCESS;
}

EMULATED cuEventSynchronize(Event* event) {
    MAY_FAIL;
    if (auto status = captured(event)) return status;
    uint64_t number = event->state->recorded;
    wait_until([&] {
        for (Context* context : contexts())
            if (context->failed) return true;
        return event->state->done >= number;
    });
    races::host_saw(event->state->clock);
    return event->state->done >= number ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

EMULATED cuEventElapsedTime(float* milliseconds, Event* begin, Event* end) {
    if (cuEventQuery(begin) || cuEventQuery(end)) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>((end->state->time_ns - begin->state->time_ns) * 1e-6);
    return CUDA_SUCCESS;
}

EMULATED cuStreamBeginCapture_v2(Stream* stream, int) {
    MAY_FAIL;
    if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream;
    static std::atomic<uint64_t> num_begun;
    stream->capture->id = ++num_begun;
    stream->capture->streams.push_back(stream);
    stream->unjoined = false;
    captures.push_back(stream->capture);
    return CUDA_SUCCESS;
}

EMULATED cuStreamIsCapturing(Stream* stream, int* status) {
    stream = stream_of(stream);
    *status = !stream->capture ? 0 : stream->capture->valid ? 1 : 2;
    return CUDA_SUCCESS;
}

EMULATED cuStreamGetCaptureInfo_v2(Stream* stream, int* status, uint64_t* id, Graph**, const void**, size_t*) {
    stream = stream_of(stream);
    cuStreamIsCapturing(stream, status);
    if (*status == 1) *id = stream->capture->id;
    return CUDA_SUCCESS;
}

EMULATED cuStreamEndCapture(Stream* stream, Graph** graph) {
    *graph = nullptr;
    if (!stream->capture || stream->capture->origin != stream) return CUDA_ERROR_INVALID_VALUE;
    auto capture = stream->capture;
    bool joined = true;
    for (Stream* s : capture->streams) {
        joined &= !s->unjoined;
        s->capture.reset();
        s->unjoined = false;
    }
    capture->ended = true;
    std::erase(captures, capture);
    if (!capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    return *graph = new Graph{std::move(capture->nodes)}, CUDA_SUCCESS;
}

EMULATED cuGraphInstantiateWithFlags(GraphExec** exec, Graph* graph, uint64_t) {
    MAY_FAIL;
    return *exec = new GraphExec{std::make_shared<const std::vector<Work>>(graph->nodes)}, CUDA_SUCCESS;
}

EMULATED cuGraphLaunch(GraphExec* exec, Stream* stream) {
    MAY_FAIL;
    std::vector<Work> nodes;
    for (auto& node : *exec->nodes) nodes.push_back(node.for_launch ? node.for_launch() : node);
    return submit(stream, {[nodes = std::move(nodes)] {
        for (auto& node : nodes)
            if (!node.run()) return false;
        return true;
    }});
}

EMULATED cuGraphUpload(GraphExec*, Stream*) { return CUDA_SUCCESS; }

EMULATED cuGraphExecDestroy(GraphExec* exec) { return delete exec, CUDA_SUCCESS; }

EMULATED cuGraphDestroy(Graph* graph) { return delete graph, CUDA_SUCCESS; }
