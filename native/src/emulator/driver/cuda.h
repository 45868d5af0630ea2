// The part of the CUDA driver's interface that the project binds, written down for a machine without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

enum CUresult : int {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_ALREADY_MAPPED = 208,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
    CUDA_ERROR_CAPTURED_EVENT = 907,
};

using CUdevice = int;
using CUdeviceptr = uint64_t;

struct CUlaunchAttribute {
    int id;
    int padding;
    union {
        int value;
        uint32_t dim[3];
        uint64_t words[8];
    };
};

struct CUlaunchConfig {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    struct Stream* stream;
    CUlaunchAttribute* attributes;
    unsigned num_attributes;
};

struct CUmemLocation {
    int type, id;
};

struct CUmemAllocationProp {
    int type, handle_types;
    CUmemLocation location;
};

struct CUipcHandle {
    uint8_t bytes[64];
};

#define EMULATED extern "C" __attribute__((visibility("default"))) CUresult
