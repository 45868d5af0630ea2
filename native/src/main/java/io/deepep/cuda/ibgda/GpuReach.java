package io.deepep.cuda.ibgda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.driver.CuCall;
import io.deepep.error.NativeCallException;
import io.deepep.spi.posix.PosixFd;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/** How cards reach memory of a GPU: by a dma-buf, else through the module nvidia-peermem. */
final class GpuReach {
    private static final int DMA_BUF_FD = 1;

    /** The largest that hosts have; what is rounded up to it is inside a mapping of 2 MiB. */
    private static final long PAGE_BYTES = 64L << 10;

    private static final CuCall GET_HANDLE =
            CuCall.of(
                    "cuMemGetHandleForAddressRange",
                    ADDRESS,
                    JAVA_LONG,
                    JAVA_LONG,
                    JAVA_INT,
                    JAVA_LONG);

    private GpuReach() {}

    /**
     * Registers a range that begins with an allocation, by the first way that works.
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
        if (!context.cudaDevice().supportsDmaBuf()) {
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

    /**
     * By a dma-buf alone: of whole pages, and open while the range is registered.
     *
     * @param register given the descriptor
     */
    static <T> T byDmaBuf(
            CudaContext context, long address, long numBytes, IntFunction<T> register) {
        context.makeCurrent();
        long pages = Math.ceilDiv(numBytes, PAGE_BYTES) * PAGE_BYTES;
        int descriptor = (int) GET_HANDLE.ask(address, pages, DMA_BUF_FD, 0);
        try {
            return register.apply(descriptor);
        } finally {
            PosixFd.close(descriptor);
        }
    }
}
