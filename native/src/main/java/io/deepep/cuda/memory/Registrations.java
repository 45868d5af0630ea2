package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.CallSlots;
import io.deepep.cuda.driver.CuCall;
import io.deepep.spi.Undo;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/**
 * What this process has registered for kernels of the memory of other devices. The driver takes an
 * address once, in all contexts together; those who share a register share that, and it goes with
 * the last of them.
 *
 * <p>One lock for all, held while the driver works.
 */
final class Registrations {
    /** Those of this process. */
    static final Registrations OF_PROCESS = new Registrations(new CudaDriverCalls());

    /** What registers, and says where kernels of the current context find it. */
    interface Driver {
        void register(long address, long numBytes);

        long deviceAddress(long address);

        void unregister(long address);
    }

    private static final class CudaDriverCalls implements Driver {
        private static final int PORTABLE_MAPPED_IO_MEMORY = 1 | 2 | 4;
        private static final CuCall REGISTER =
                CuCall.of("cuMemHostRegister_v2", ADDRESS, JAVA_LONG, JAVA_INT);
        private static final CuCall UNREGISTER = CuCall.of("cuMemHostUnregister", ADDRESS);
        private static final CuCall GET_DEVICE_POINTER =
                CuCall.of("cuMemHostGetDevicePointer_v2", ADDRESS, ADDRESS, JAVA_INT);

        @Override
        public void register(long address, long numBytes) {
            REGISTER.call(MemorySegment.ofAddress(address), numBytes, PORTABLE_MAPPED_IO_MEMORY);
        }

        @Override
        public long deviceAddress(long address) {
            GET_DEVICE_POINTER.call(CallSlots.first(), MemorySegment.ofAddress(address), 0);
            return CallSlots.asLong(CallSlots.first());
        }

        @Override
        public void unregister(long address) {
            UNREGISTER.call(MemorySegment.ofAddress(address));
        }
    }

    private final Driver driver;
    private final Map<Long, Integer> numUsers = new HashMap<>();

    Registrations(Driver driver) {
        this.driver = driver;
    }

    /**
     * Where kernels of the current context find it. Every call is paired with one of {@link
     * #close}, unless it throws.
     */
    synchronized long open(long address, long numBytes) {
        try (Undo made = new Undo()) {
            if (!numUsers.containsKey(address)) {
                driver.register(address, numBytes);
                made.made(address, driver::unregister);
            }
            long deviceAddress = driver.deviceAddress(address);
            numUsers.merge(address, 1, Integer::sum);
            made.forget();
            return deviceAddress;
        }
    }

    /** One user less; the last unregisters. */
    synchronized void close(long address) {
        int users = numUsers.remove(address);
        if (users > 1) {
            numUsers.put(address, users - 1);
        } else {
            driver.unregister(address);
        }
    }
}
