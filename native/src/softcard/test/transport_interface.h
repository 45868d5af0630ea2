// The interface of NVSHMEM 3.4's transport plugins, as far as the test calls them: the order and types of what both
// sides share. Of NVSHMEM's own headers only the public ones are used.
#pragma once

#include <device_host_transport/nvshmem_common_transport.h>
#include <non_abi/nvshmem_version.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace transport {

struct MemoryHandle {
    char bytes[512];
};

struct Bootstrap {
    int version, rank, size, node_rank, node_size;
    int (*allgather)(const void*, void*, int, Bootstrap*);
    int (*alltoall)(const void*, void*, int, Bootstrap*);
    int (*barrier)(Bootstrap*);
    void (*global_exit)(int);
    int (*finalize)(Bootstrap*);
    int (*show_info)(Bootstrap*, int);
    void* init_ops;
    void* state;
};

struct Verb {
    nvshmemi_op_t operation;
    int nonblocking;
    int on_stream;
    void* stream;
};

struct Place {
    void* address;
    uint64_t offset;
    MemoryHandle* handle;
};

struct Extent {
    size_t num_elements;
    int element_bytes;
    ptrdiff_t source_stride, target_stride;
};

struct AtomicVerb {
    nvshmemi_amo_t operation;
    int fetches, has_value, has_comparand;
};

struct AtomicTarget {
    Place place;
    uint64_t return_flag;
    void *return_address, *value_address, *comparand_address;
    uint64_t value, comparand;
    MemoryHandle* return_handle;
};

struct AtomicExtent {
    int type, element_bytes;
};

struct Transport;

struct Operations {
    int (*can_reach_peer)(int*, void*, Transport*);
    int (*connect_endpoints)(Transport*, int* devices, int num_devices);
    int (*get_mem_handle)(MemoryHandle*, void*, size_t, Transport*, bool local_only);
    int (*release_mem_handle)(MemoryHandle*, Transport*);
    int (*finalize)(Transport*);
    int (*show_info)(Transport*, int);
    int (*progress)(Transport*);
    int (*rma)(Transport*, int pe, Verb, Place* remote, Place* local, Extent, int for_proxy);
    int (*amo)(Transport*, int pe, void*, AtomicVerb, AtomicTarget*, AtomicExtent, int for_proxy);
    int (*fence)(Transport*, int pe, int for_proxy);
    int (*quiet)(Transport*, int pe, int for_proxy);
    int (*enforce_cst)(Transport*);
    int (*enforce_cst_at_target)(Transport*);
    int (*add_device_remote_mem_handles)(Transport*, int, MemoryHandle*, uint64_t, size_t);
};

struct Transport {
    int api_version;
    int type;
    int* capabilities;
    Operations operations;
    Bootstrap* bootstrap;
    void *state, *device_state, *cache;
    char** pci_paths;
    int attributes, num_devices;
    bool atomics_complete_on_quiet, is_initialized, needs_no_proxy;
    void* heap_base;
    size_t log2_granularity;
    uint64_t max_bytes;
    uint32_t host_order_from;
    int index, pe, num_pes;
    std::unordered_map<void*, void*>* aliases;
    std::unordered_map<void*, size_t>* extended;
};

using Init = int (*)(Transport**, void* cuda_functions, int version);

}  // namespace transport
