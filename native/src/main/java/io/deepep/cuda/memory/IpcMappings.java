package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.CallSlots;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuStructs;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;

/**
 * The memory of other processes that this one has mapped by CUDA IPC. A context maps an allocation
 * once; ranks that are threads of one process and share a GPU share that mapping, which goes with
 * the last of them.
 *
 * <p>One lock for all, held while the driver works: who asks for what is just being mapped waits.
 */
final class IpcMappings {
    /** Those of this process. */
    static final IpcMappings OF_PROCESS = new IpcMappings(new CudaDriverCalls());

    /** What maps and unmaps, in the current context. */
    interface Driver {
        long open(byte[] handle);

        void close(long base);
    }

    private static final class CudaDriverCalls implements Driver {
        private static final int LAZY_ENABLE_PEER_ACCESS = 1;
        private static final CuCall OPEN =
                CuCall.of("cuIpcOpenMemHandle_v2", ADDRESS, CuStructs.IPC_HANDLE, JAVA_INT);
        private static final CuCall CLOSE = CuCall.of("cuIpcCloseMemHandle", JAVA_LONG);

        @Override
        public long open(byte[] handle) {
            try (Arena arena = Arena.ofConfined()) {
                OPEN.call(
                        CallSlots.first(),
                        IpcHandle.copyTo(arena, handle),
                        LAZY_ENABLE_PEER_ACCESS);
            }
            return CallSlots.asLong(CallSlots.first());
        }

        @Override
        public void close(long base) {
            CLOSE.call(base);
        }
    }

    /**
     * An allocation as a context sees it.
     *
     * @param handle the driver's, which no other allocation ever has
     */
    private record Key(long context, ByteBuffer handle) {}

    private record Mapping(long base, int numUsers) {}

    private final Driver driver;
    private final Map<Key, Mapping> mappings = new HashMap<>();

    IpcMappings(Driver driver) {
        this.driver = driver;
    }

    /**
     * Where the allocation begins. Every call is paired with one of {@link #close}, unless it
     * throws.
     *
     * @param context the handle of the context, which is current
     */
    synchronized long open(long context, byte[] handle) {
        Key key = new Key(context, ByteBuffer.wrap(handle));
        Mapping mapping = mappings.get(key);
        if (mapping == null) {
            mapping = new Mapping(driver.open(handle), 0);
        }
        mappings.put(key, new Mapping(mapping.base(), mapping.numUsers() + 1));
        return mapping.base();
    }

    /** One user less; the last unmaps. */
    synchronized void close(long context, byte[] handle) {
        Key key = new Key(context, ByteBuffer.wrap(handle));
        Mapping mapping = mappings.remove(key);
        if (mapping.numUsers() > 1) {
            mappings.put(key, new Mapping(mapping.base(), mapping.numUsers() - 1));
        } else {
            driver.close(mapping.base());
        }
    }
}
