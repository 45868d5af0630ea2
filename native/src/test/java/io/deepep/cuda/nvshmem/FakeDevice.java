package io.deepep.cuda.nvshmem;

import io.deepep.error.NativeCallException;

/** A GPU that is not there. */
final class FakeDevice implements NvshmemDevice {
    volatile boolean lost;
    volatile Thread currentOn;

    @Override
    public void makeCurrent() {
        currentOn = Thread.currentThread();
    }

    @Override
    public void synchronize() {
        if (lost) {
            throw new NativeCallException(
                    "cuCtxSynchronize", 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cuda:0", true);
        }
    }

    @Override
    public String toString() {
        return "cuda:0 (fake)";
    }
}
