package io.deepep.cuda;

import static io.deepep.cuda.driver.CuStructs.offset;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What decides how many multiprocessors fill the links of a GPU. A multiprocessor moves so many
 * bytes in each of its clocks: on H200, where it was measured, 12 fill the links with pushes and
 * with pulls.
 *
 * @param bytesPerSecond of all NVLinks that are active, in one direction, as the driver's
 *     management library (NVML) states them
 * @param clockHz of the multiprocessors, at most
 */
public record LinkSpeed(long bytesPerSecond, long clockHz) {
    private static final long MEGA = 1_000_000;
    private static final long KILO = 1_000;
    private static final LinkSpeed H200 = new LinkSpeed(MEGA * 18 * 26_562, 1_980 * MEGA);
    private static final int ATTRIBUTE_CLOCK_KHZ = 13;
    private static final int SPEED_MBPS_COMMON = 90;

    /** {@code nvmlFieldValue_t}, its value an unsigned int. */
    private static final StructLayout FIELD_VALUE =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("fieldId"),
                    JAVA_INT.withName("scopeId"),
                    JAVA_LONG.withName("timestamp"),
                    JAVA_LONG.withName("latencyUsec"),
                    JAVA_INT.withName("valueType"),
                    JAVA_INT.withName("nvmlReturn"),
                    JAVA_LONG.withName("value"));

    /** Of GPUs that have been asked about: it stays, and the library starts slowly. */
    private static final Map<PciAddress, Optional<Long>> KNOWN = new ConcurrentHashMap<>();

    /**
     * Asks about a GPU.
     *
     * @return empty where it has no links, or this cannot be asked
     */
    public static Optional<LinkSpeed> of(CudaDevice gpu) {
        PciAddress address = PciAddress.parse(gpu.pciBusId());
        long clockHz = gpu.attribute(ATTRIBUTE_CLOCK_KHZ) * KILO;
        Optional<Long> speed =
                KNOWN.computeIfAbsent(address, _ -> Nvml.ask(nvml -> ask(nvml, address)));
        return speed.filter(_ -> clockHz > 0).map(bytes -> new LinkSpeed(bytes, clockHz));
    }

    /** How much more the links carry in a clock than those of an H200; 1 if that is less. */
    public double demand() {
        return Math.max(1, bytesPerClock() / H200.bytesPerClock());
    }

    private double bytesPerClock() {
        return (double) bytesPerSecond / clockHz;
    }

    static Optional<Long> bytesPerSecond(NativeLibrary library, PciAddress gpu) {
        return Nvml.ask(library, nvml -> ask(nvml, gpu));
    }

    private static Optional<Long> ask(Nvml nvml, PciAddress gpu) {
        MemorySegment field = nvml.arena().allocate(FIELD_VALUE);
        field.set(JAVA_INT, offset(FIELD_VALUE, "fieldId"), SPEED_MBPS_COMMON);
        return nvml.device(gpu)
                .filter(device -> nvml.answers("nvmlDeviceGetFieldValues", device, 1, field))
                .filter(_ -> field.get(JAVA_INT, offset(FIELD_VALUE, "nvmlReturn")) == Nvml.SUCCESS)
                .map(nvml::activeLinks)
                .map(List::size)
                .map(links -> MEGA * links * field.get(JAVA_INT, offset(FIELD_VALUE, "value")))
                .filter(speed -> speed > 0);
    }
}
