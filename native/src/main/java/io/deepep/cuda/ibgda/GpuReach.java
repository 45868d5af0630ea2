package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.DmaBuf;
import io.deepep.error.NativeCallException;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/** How cards reach memory of a GPU: by a dma-buf, else through the module nvidia-peermem. */
final class GpuReach {
    private GpuReach() {}

    /**
     * Registers a range by the first way that works.
     *
     * @param byDmaBuf given a descriptor
     * @param byPeerMem by the address alone
     * @throws NativeCallException if neither works: that of the second, with that of the first as
     *     suppressed
     */
    static <T> T register(
            CudaContext context,
            long address,
            long numBytes,
            IntFunction<T> byDmaBuf,
            Supplier<T> byPeerMem) {
        if (!DmaBuf.isSupported(context)) {
            return byPeerMem.get();
        }
        try {
            return byDmaBuf(context, address, numBytes, byDmaBuf);
        } catch (NativeCallException first) {
            try {
                return byPeerMem.get();
            } catch (NativeCallException second) {
                second.addSuppressed(first);
                throw second;
            }
        }
    }

    /** By a dma-buf alone. */
    static <T> T byDmaBuf(
            CudaContext context, long address, long numBytes, IntFunction<T> register) {
        try (DmaBuf dmaBuf = DmaBuf.of(context, address, numBytes)) {
            return register.apply(dmaBuf.descriptor());
        }
    }
}
