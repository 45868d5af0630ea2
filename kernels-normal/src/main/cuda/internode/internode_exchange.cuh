// The header exchange across nodes, and the end of a call.
//
// A rank's header goes over the network to its contacts, its peer on every node, which relay it to the ranks there, so
// that every rank finds the words of all ranks in its heap, as on one node. One block of a rank, the leader, does this
// and judges; the others wait for its verdict. Once all ranks have announced a call they have all entered it: rings are
// empty, and what the call before received may be overwritten. Counts of rings begin at 0 with each epoch.
#pragma once

#include "../shared/exchange.cuh"
#include "deepep/wait.cuh"
#include "internode_waits.cuh"

namespace deepep::normal {

__device__ __forceinline__ Plan* plan_of(const Internode& b) { return at<Plan>(b.plan); }

// The header of the contact at a place.
template <class Net>
__device__ __forceinline__ int32_t* header_image(const Group& g, const Internode& b, int place, uint32_t epoch) {
    return at<int32_t>(Contacts<Net>::cell(g, b.network, b.headers, place), (epoch & 1) * b.header_bytes);
}

template <class Net>
__device__ __forceinline__ int32_t* own_header(const Group& g, const Internode& b, uint32_t epoch) {
    return header_image<Net>(g, b, Contacts<Net>::own(g, b.network), epoch);
}

// Words of a header as it crosses the network: counts follow only in a new dispatch.
__device__ __forceinline__ int num_counted(const Internode& b, int32_t op) {
    return op == kOpDispatch ? kHeaderWords + b.num_ranks : kHeaderWords;
}

// Counts per rank, summed over the blocks, into this rank's own header. All threads of the leader.
template <class Net>
__device__ inline void sum_counts(const Internode& b, const Group& g, uint32_t epoch) {
    int32_t* counts = own_header<Net>(g, b, epoch) + kHeaderWords;
    int num_places = b.network.num_nodes * node_places(b);
    for (int rank = threadIdx.x; rank < b.num_ranks; rank += blockDim.x) {
        int place = place_of(g, b, rank);
        int32_t sum = 0;
#pragma unroll 8
        for (uint32_t block = 0; block < gridDim.x; ++block)
            sum += at<const int32_t>(b.block_counts)[block * num_places + place];
        counts[rank] = sum;
    }
    __syncthreads();
}

// Sends `words` to all contacts; in a new dispatch also the counts of sum_counts, and the expert counts of their node.
// All threads of the leader.
template <class Net>
__device__ inline void announce(const Internode& b, const Group& g, uint32_t epoch, const int32_t* words,
                                const uint32_t* expert_counts) {
    using To = Contacts<Net>;
    const Network& net = b.network;
    int num_words = num_counted(b, words[kOp]), experts_per_node = words[kNumExperts] / net.num_nodes;
    if (num_words == kHeaderWords) experts_per_node = 0;
    int32_t* own = own_header<Net>(g, b, epoch);
    if (threadIdx.x < kHeaderWords) own[threadIdx.x] = words[threadIdx.x];
    __syncthreads();
    for (int place = 0; place < To::size(net); ++place) {
        int32_t* image = own;
        int node = To::node(g, place);
        if (!To::has_header(net, place)) continue;
        if (place != To::own(g, net)) {
            image = at<int32_t>(To::outgoing(net, b.headers, place), (epoch & 1) * b.header_bytes);
            for (int i = threadIdx.x; i < num_words; i += blockDim.x) image[i] = own[i];
        }
        for (int e = threadIdx.x; e < experts_per_node; e += blockDim.x)
            image[num_words + e] = expert_counts[node * experts_per_node + e];
    }
    fence_sys();
    __syncthreads();
    if (threadIdx.x >= 32) return;
    uint64_t offset = (epoch & 1) * b.header_bytes, num_bytes = (num_words + experts_per_node) * sizeof(int32_t);
    for (int first = 0; first < To::size(net); first += 32) {
        int place = first + threadIdx.x;
        // release; pairs with the acquire in relay_header
        To::put_signal(net, place < To::size(net) && To::is_used(net, place), place, b.headers, offset, num_bytes,
                       b.header_flags, (epoch & 1) * sizeof(uint64_t), epoch);
    }
}

// Hands the header at a place to the ranks of this node, each with the counts of its own experts. One warp.
template <class Net>
__device__ inline bool relay_header(const Nodes<Net>& nodes, uint32_t epoch, int place) {
    using From = Contacts<Net>;
    const Group& g = nodes.g;
    const Internode& b = nodes.b;
    int lane = threadIdx.x % 32, source = From::rank(g, b.network, place);
    if (place != From::own(g, b.network)) {
        auto flag = at<const uint64_t>(From::cell(g, b.network, b.header_flags, place)) + (epoch & 1);
        uint64_t seen, begin = wait_begin(g);
        // acquire; pairs with announce
        bool arrived = await_word(nodes, epoch, source, kPhaseHeader, flag, seen, true);
        if (lane == 0) tell_wait(g, kWaitForHeader, source, begin);
        // A lane alone may have given up just before the header came: all go on, or none.
        if (!__all_sync(~0u, arrived)) return Routes<Net>::kMaskable && !__any_sync(~0u, has_given_up(g, epoch));
    }
    const int32_t* image = header_image<Net>(g, b, place, epoch);
    int num_words = num_counted(b, image[kOp]);
    int num_experts = num_words == kHeaderWords ? 0 : image[kNumExperts] / b.num_ranks;
    for (int i = 0; i < g.num_ranks; ++i) {
        int rank = (g.rank + i) % g.num_ranks;
        if (!nodes.takes_part(rank)) continue;
        uint64_t* there = header_slot(g, rank, source, epoch);
        for (int w = lane; w < num_words; w += 32)  // pairs with await in await_words
            store_relaxed_sys(there + w, pack_word(epoch, image[w]));
        for (int e = lane; e < num_experts; e += 32)  // pairs with await_word in report_counts
            store_relaxed_sys(there + num_words + e, pack_word(epoch, image[num_words + rank * num_experts + e]));
    }
    return true;
}

// A rank whose header is missing, or the rank of this node that should have relayed it: if nothing of that came either,
// or if it does not say that it waits for that header too.
__device__ inline int absent_rank(const Group& g, int rank, uint32_t epoch) {
    int within = rank % g.num_ranks, relay = g.first_rank + within;
    if (within == g.rank) return rank;
    bool came = word_epoch(load_relaxed_sys(header_slot(g, g.rank, relay, epoch))) == epoch;
    return came && patience_for(g, epoch, done_flag(g, g.rank, within)) != 0 ? rank : relay;
}

// Whether no neighbour has left this call: one that gave up on this rank, or is in a later call. All threads of the
// leader.
template <class Net>
__device__ inline bool neighbours_stay(const Nodes<Net>& nodes, uint32_t epoch) {
    const Group& g = nodes.g;
    bool stays = true;
    if (threadIdx.x < g.num_ranks && threadIdx.x != g.rank && nodes.takes_part(threadIdx.x)) {
        Fault fault;
        stays = !neighbour_left(g, epoch, kPhaseHeader, threadIdx.x, fault);
        if (!stays) record_fault(g, epoch, fault);
    }
    return __syncthreads_and(stays);
}

// Waits for words first .. first + count - 1 of all ranks that take part. All threads of the leader.
template <class Net>
__device__ inline bool await_words(const Nodes<Net>& nodes, uint32_t epoch, int first, int count) {
    const Group& g = nodes.g;
    if (!neighbours_stay(nodes, epoch)) return false;  // whose headers may stand all the same
    bool arrived = true;
    for (int i = threadIdx.x; i < nodes.b.num_ranks * count && arrived; i += blockDim.x) {
        int rank = i / count, word = first + i % count;
        if (!nodes.is_source(rank)) continue;
        const uint64_t* here = header_slot(g, g.rank, rank, epoch) + word;
        auto look = [=](uint64_t& seen) {
            seen = load_acquire_sys(here);
            return word_epoch(seen) == epoch;
        };
        const Group* group = &g;
        uint64_t begin = wait_begin(g);
        auto relayed = [=] {
            return Wait{absent_rank(*group, rank, epoch), kPhaseHeader, epoch, word < kHeaderWords};
        };
        // While ranks are masked, all are contacts or neighbours, and nobody else is to blame.
        auto direct = [=] { return Wait{rank, kPhaseHeader, epoch, word < kHeaderWords}; };
        arrived = (Routes<Net>::word(g) != 0 ? await(nodes, epoch, look, direct)
                                                           : await(nodes, epoch, look, relayed)) != 0;
        // Otherwise somebody has masked the rank, and all refuse the call.
        if constexpr (Routes<Net>::kMaskable) arrived = arrived || !has_given_up(g, epoch);
        // Of the contacts, relay_header tells.
        if (word == 0 && !Contacts<Net>::includes(g, nodes.b.network, rank)) tell_wait(g, kWaitForHeader, rank, begin);
    }
    return __syncthreads_and(arrived);
}

// In shared memory: the first rank that reports a fault, and the first word that differs, counted over all ranks.
struct Judgement {
    int32_t &first_bad, &first_different;
};

__device__ inline Judgement judgement() {
    __shared__ int32_t first_bad, first_different;
    return {first_bad, first_different};
}

// Whether a word of a header takes part in what ranks conclude. All do once all have come; where a call is refused
// because masks differ, some may be missing.
template <class Net>
__device__ __forceinline__ bool is_heard(const Nodes<Net>& nodes, int rank, int word, uint32_t epoch) {
    if (!nodes.is_source(rank)) return false;
    return !Routes<Net>::kMaskable || word_epoch(heard_word(nodes.g, rank, word, epoch)) == epoch;
}

// What all ranks conclude alike: a rank's own status first, then words that differ from those of the first rank. All
// threads; the result is the same in all of them.
template <class Net>
__device__ inline Fault judge_words(const Nodes<Net>& nodes, uint32_t epoch) {
    const Group& g = nodes.g;
    const Internode& b = nodes.b;
    int first = Routes<Net>::first(b.network);
    if constexpr (Routes<Net>::kMaskable)
        while (!is_heard(nodes, first, kMasked, epoch)) ++first;
    auto [first_bad, first_different] = judgement();
    if (threadIdx.x == 0) first_bad = first_different = INT32_MAX;
    __syncthreads();
    for (int r = threadIdx.x; r < b.num_ranks; r += blockDim.x)
        if (is_heard(nodes, r, kStatus, epoch) && header_word(g, r, kStatus, epoch) != kOk) atomicMin(&first_bad, r);
    for (int i = threadIdx.x; i < b.num_ranks * kNumCompared; i += blockDim.x)
        if (is_heard(nodes, i / kNumCompared, i % kNumCompared, epoch) &&
            (!Routes<Net>::kMaskable || is_heard(nodes, first, i % kNumCompared, epoch)) &&
            header_word(g, i / kNumCompared, i % kNumCompared, epoch) !=
                header_word(g, first, i % kNumCompared, epoch))
            atomicMin(&first_different, i);
    __syncthreads();
    Fault fault;
    if (first_bad != INT32_MAX) {
        fault.rank = first_bad;
        fault.code = header_word(g, first_bad, kStatus, epoch);
        fault.token = header_word(g, first_bad, kStatusToken, epoch);
        fault.k = header_word(g, first_bad, kStatusK, epoch);
        uint32_t low = header_word(g, first_bad, kStatusValueLow, epoch);
        uint32_t high = header_word(g, first_bad, kStatusValueHigh, epoch);
        fault.seen = static_cast<int64_t>(static_cast<uint64_t>(high) << 32 | low);
    } else if (first_different != INT32_MAX) {
        fault.code = kHeaderMismatch;
        fault.rank = first_different / kNumCompared;
        fault.peer = first;
        fault.k = first_different % kNumCompared;
        fault.expected = header_word(g, first, fault.k, epoch);
        fault.seen = header_word(g, fault.rank, fault.k, epoch);
    }
    return fault;
}

// Relays and collects the headers that open a call, and judges them. All threads of the leader.
template <class Net>
__device__ inline Fault open_call(const Nodes<Net>& nodes, uint32_t epoch) {
    const Group& g = nodes.g;
    const Internode& b = nodes.b;
    // A rank that begins a call long after the others left it still has its contacts' headers. It hands them to nobody:
    // its neighbours are in later calls, whose headers lie in the same slots.
    bool ok = neighbours_stay(nodes, epoch);
    using From = Contacts<Net>;
    for (int place = threadIdx.x / 32; place < From::size(b.network) && ok; place += blockDim.x / 32)
        if (From::has_header(b.network, place)) ok = relay_header(nodes, epoch, place);
    Fault fault;
    fault.code = kTimeout;
    if (!__syncthreads_and(ok) || !await_words(nodes, epoch, 0, kHeaderWords)) return fault;
    fault = judge_words(nodes, epoch);
    if (threadIdx.x == 0 && fault.code != kOk) record_fault(g, epoch, fault);
    return fault;
}

// Tells the other blocks. All threads of the leader, after what the plan holds.
__device__ inline void give_verdict(const Internode& b, uint32_t epoch, uint32_t code) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) store_release_gpu(&plan_of(b)->verdict, pack_word(epoch, code));  // pairs with await_verdict
}

// All threads of every block: whether the call goes on.
__device__ inline bool await_verdict(const Internode& b, const Group& g, uint32_t epoch) {
    __shared__ bool ok;
    if (threadIdx.x == 0) {
        uint64_t seen;
        // The leader waits for relays, then for headers, then for counts, each twice the longer timeout at most.
        uint64_t deadline = now_ns() + 7 * max(g.timeout_ns, g.start_timeout_ns);
        bool decided = await_block(&plan_of(b)->verdict, epoch, deadline, seen);  // acquire
        if (!decided)
            record_fault(g, epoch, wait_fault(g, kGridNotResident, kPhaseGrid, my_rank(g), epoch, seen));
        ok = decided && word_value(seen) == kOk;
    }
    __syncthreads();
    return ok;
}

// Where some rank takes only so many expanded rows, all nodes learn whether they all fit: contacts tell each other
// before the ranks of each node do. A rank that has given up tells its contacts in any case, and waits for nobody. All
// threads of the block that leaves last.
template <class Net>
__device__ inline void exchange_endings(const Nodes<Net>& nodes, uint32_t epoch) {
    const Group& g = nodes.g;
    const Internode& b = nodes.b;
    using To = Contacts<Net>;
    const Network& net = b.network;
    uint32_t code = told_code(g, epoch);
    for (int first = 0; first < To::size(net) && threadIdx.x < 32; first += 32) {
        int place = first + threadIdx.x;
        bool sends = place < To::size(net) && To::is_used(net, place);
        if (sends) tell_more(g, epoch, at<uint64_t>(To::outgoing(net, b.endings, place)));
        // release; pairs with the acquires below and in Nodes::somebody_left
        To::put_signal(net, sends, place, b.endings, kDoneDetail * sizeof(uint64_t),
                       (kDoneWaiting - kDoneDetail) * sizeof(uint64_t), b.endings, 0, pack_word(epoch, code));
    }
    for (int place = threadIdx.x; place < To::size(net) && !is_abort(code); place += blockDim.x) {
        if (!To::is_used(net, place)) continue;
        int peer = To::rank(g, net, place);
        uint64_t seen, begin = wait_begin(g);
        bool ended = await_end(nodes, epoch, peer, ending_of<Net>(g, b, place), seen);  // acquire
        tell_wait(g, kWaitForEnd, peer, begin);
        if (ended && word_value(seen) != kOk)
            record_fault(g, epoch, told_fault(g, seen, ending_of<Net>(g, b, place), kPhaseDone, peer));
    }
    __syncthreads();
}

// Ends a call. All threads of the block that leaves last; thread 0 gets the call's code.
template <class Net>
__device__ inline uint32_t finish_everywhere(const Nodes<Net>& nodes, uint32_t epoch, bool ok) {
    const Internode& b = nodes.b;
    // A rank that was given up may be dead: nobody waits until a card gives it up too, while others wait to be told.
    // What such a call sent is void, and rows come in its place only once all have announced the next call.
    bool aborts = is_abort(told_code(nodes.g, epoch));
    if (threadIdx.x == 0 && !aborts) Net::quiet(b.network);
    if ((ok && plan_of(b)->ends_together) || aborts) exchange_endings(nodes, epoch);
    return finish_call(nodes, epoch, ok);
}

}  // namespace deepep::normal
