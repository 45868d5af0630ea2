package io.deepep.cuda.topology;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.driver.NativeLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;

/**
 * What an RDMA device says of itself to libibverbs, and sysfs does not tell. 0 where it cannot be
 * opened.
 *
 * @param hca the RDMA device, for example {@code mlx5_0}
 * @param firmware its version
 * @param maxQueuePairs of all processes together
 * @param maxQueuePairEntries work requests that a queue pair holds
 */
public record NicLimits(String hca, String firmware, int maxQueuePairs, int maxQueuePairEntries) {
    private static final String LIBRARY = "libibverbs.so.1";

    /** The devices in the order in which the library lists them; none without the library. */
    public static List<NicLimits> read() {
        return read(LIBRARY);
    }

    /** The same of another library. */
    static List<NicLimits> read(String library) {
        return NativeLibrary.find(library).map(found -> new Verbs(found).ask()).orElse(List.of());
    }

    /** A device that cannot be opened. */
    public static NicLimits unknown(String hca) {
        return new NicLimits(hca, "", 0, 0);
    }

    /** Whether the device could be asked. */
    public boolean isKnown() {
        return maxQueuePairs > 0;
    }

    /** The functions of libibverbs that tell limits. */
    private static final class Verbs {
        // Of struct ibv_device_attr.
        private static final long FIRMWARE = 0;
        private static final long MAX_QUEUE_PAIRS = 108;
        private static final long MAX_QUEUE_PAIR_ENTRIES = 112;

        /** More than the structure has in any version. */
        private static final long ATTRIBUTES = 1024;

        private static final FunctionDescriptor POINTER_OF_POINTER =
                FunctionDescriptor.of(ADDRESS, ADDRESS);

        private final MethodHandle getDeviceList;
        private final MethodHandle getDeviceName;
        private final MethodHandle freeDeviceList;
        private final MethodHandle openDevice;
        private final MethodHandle queryDevice;
        private final MethodHandle closeDevice;

        Verbs(NativeLibrary library) {
            getDeviceList = library.bind("ibv_get_device_list", POINTER_OF_POINTER);
            getDeviceName = library.bind("ibv_get_device_name", POINTER_OF_POINTER);
            freeDeviceList =
                    library.bind("ibv_free_device_list", FunctionDescriptor.ofVoid(ADDRESS));
            openDevice = library.bind("ibv_open_device", POINTER_OF_POINTER);
            queryDevice =
                    library.bind(
                            "ibv_query_device", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
            closeDevice =
                    library.bind("ibv_close_device", FunctionDescriptor.of(JAVA_INT, ADDRESS));
        }

        List<NicLimits> ask() {
            List<NicLimits> nics = new ArrayList<>();
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment number = arena.allocate(JAVA_INT);
                MemorySegment list = (MemorySegment) getDeviceList.invokeExact(number);
                if (list.equals(MemorySegment.NULL)) {
                    return nics; // the kernel has no RDMA
                }
                int count = number.get(JAVA_INT, 0);
                MemorySegment devices = list.reinterpret(count * ADDRESS.byteSize());
                for (int i = 0; i < count; i++) {
                    nics.add(ask(devices.getAtIndex(ADDRESS, i), arena));
                }
                freeDeviceList.invokeExact(list);
            } catch (Throwable failure) {
                throw new AssertionError("calls into libibverbs throw nothing", failure);
            }
            return nics;
        }

        private NicLimits ask(MemorySegment device, Arena arena) throws Throwable {
            MemorySegment name = (MemorySegment) getDeviceName.invokeExact(device);
            String hca = name.reinterpret(Long.MAX_VALUE).getString(0);
            MemorySegment context = (MemorySegment) openDevice.invokeExact(device);
            if (context.equals(MemorySegment.NULL)) {
                return unknown(hca);
            }
            try {
                MemorySegment attributes = arena.allocate(ATTRIBUTES, Long.BYTES);
                int error = (int) queryDevice.invokeExact(context, attributes);
                return error != 0
                        ? unknown(hca)
                        : new NicLimits(
                                hca,
                                attributes.getString(FIRMWARE),
                                attributes.get(JAVA_INT, MAX_QUEUE_PAIRS),
                                attributes.get(JAVA_INT, MAX_QUEUE_PAIR_ENTRIES));
            } finally {
                var _ = (int) closeDevice.invokeExact(context);
            }
        }
    }
}
