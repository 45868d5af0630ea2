// Green contexts: parts of a GPU. Only their sizes count, since every block runs when it likes.
#include <cstring>

#include "stream.h"

using namespace deepep::emulator;

struct Resource {  // CUdevResource
    int type;
    uint8_t padding[92];
    uint32_t num_sms, min_sms, alignment;
    uint8_t unused[36];
};

struct GreenContext {
    CUdevice device;
    Resource sms;
    Context current{.device = device, .ordinal = device};  // only asked for its device
};

namespace {

constexpr int kSms = 1;
constexpr unsigned kAlignment = 8;  // as on GPUs of capability 9

Resource resource(unsigned num_sms) {
    Resource made{};
    made.type = kSms;
    made.num_sms = num_sms;
    made.min_sms = made.alignment = kAlignment;
    return made;
}

}  // namespace

EMULATED cuDeviceGetDevResource(CUdevice, Resource* out, int type) {
    if (type != kSms) return CUDA_ERROR_INVALID_VALUE;
    return *out = resource(num_sms()), CUDA_SUCCESS;
}

EMULATED cuDevSmResourceSplitByCount(
    Resource* parts, unsigned* num_parts, const Resource* all, Resource* rest, unsigned, unsigned min_sms) {
    unsigned size = (min_sms + kAlignment - 1) / kAlignment * kAlignment;
    if (size == 0 || *num_parts * size > all->num_sms) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < *num_parts; ++i) parts[i] = resource(size);
    if (rest) *rest = resource(all->num_sms - *num_parts * size);
    return CUDA_SUCCESS;
}

EMULATED cuDevResourceGenerateDesc(Resource** description, const Resource* resources, unsigned num) {
    if (num != 1) return CUDA_ERROR_INVALID_VALUE;
    return *description = new Resource(*resources), CUDA_SUCCESS;  // the driver has no call that frees it either
}

EMULATED cuGreenCtxCreate(GreenContext** green, const Resource* description, CUdevice device, unsigned) {
    return *green = new GreenContext{device, *description}, CUDA_SUCCESS;
}

EMULATED cuGreenCtxDestroy(GreenContext* green) {
    delete green;
    return CUDA_SUCCESS;
}

EMULATED cuCtxFromGreenCtx(Context** context, GreenContext* green) {
    return *context = &green->current, CUDA_SUCCESS;
}

EMULATED cuGreenCtxGetDevResource(const GreenContext* green, Resource* out, int type) {
    if (type != kSms) return CUDA_ERROR_INVALID_VALUE;
    return *out = green->sms, CUDA_SUCCESS;
}

EMULATED cuGreenCtxStreamCreate(Stream** stream, GreenContext* green, unsigned, int) {
    Context* context = contexts()[green->device];
    *stream = new Stream{.context = context, .green = green};
    std::lock_guard lock(context->mutex);
    context->streams.push_back(*stream);
    return CUDA_SUCCESS;
}
