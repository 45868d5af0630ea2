package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.driver.CuCall;
import io.deepep.spi.posix.PosixFd;

/**
 * Device memory as a file descriptor by which other devices of the host reach it.
 *
 * @param descriptor open until this is closed; what was registered by it stays
 */
public record DmaBuf(int descriptor) implements AutoCloseable {
    private static final int ATTRIBUTE_DMA_BUF = 124;
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

    /** Whether the driver makes them. */
    public static boolean isSupported(CudaContext context) {
        return context.cudaDevice().attribute(ATTRIBUTE_DMA_BUF) != 0;
    }

    /** Of a range that begins with an allocation; it is rounded up to whole pages. */
    public static DmaBuf of(CudaContext context, long address, long numBytes) {
        context.makeCurrent();
        long pages = Math.ceilDiv(numBytes, PAGE_BYTES) * PAGE_BYTES;
        return new DmaBuf((int) GET_HANDLE.ask(address, pages, DMA_BUF_FD, 0));
    }

    @Override
    public void close() {
        PosixFd.close(descriptor);
    }
}
