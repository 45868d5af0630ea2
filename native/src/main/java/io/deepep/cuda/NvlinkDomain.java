package io.deepep.cuda;

import static io.deepep.cuda.driver.CuStructs.offset;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The NVLink domain of a GPU that may reach beyond its host, as the fabric manager has set it up
 * and the driver's management library (NVML) tells it. GPUs reach each other's memory over NVLink
 * if they have both numbers in common.
 *
 * @param cluster 32 hexadecimal digits: the UUID of what the switches connect
 * @param clique the part of it
 */
public record NvlinkDomain(String cluster, int clique) {
    private static final int UUID_BYTES = 16;
    private static final int STATE_COMPLETED = 3;
    private static final int VERSION = 2;

    /** {@code nvmlGpuFabricInfo_v2_t}. */
    private static final StructLayout FABRIC_INFO =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("version"),
                    MemoryLayout.sequenceLayout(UUID_BYTES, JAVA_BYTE).withName("clusterUuid"),
                    JAVA_INT.withName("status"),
                    JAVA_INT.withName("cliqueId"),
                    JAVA_BYTE.withName("state"),
                    MemoryLayout.paddingLayout(3),
                    JAVA_INT.withName("healthMask"));

    /** Of GPUs that have been asked about: it stays, and the library starts slowly. */
    private static final Map<PciAddress, Optional<NvlinkDomain>> KNOWN = new ConcurrentHashMap<>();

    /**
     * Asks about a GPU.
     *
     * @return empty where it has no fabric beyond its host, or this cannot be asked
     */
    public static Optional<NvlinkDomain> of(PciAddress gpu) {
        return KNOWN.computeIfAbsent(gpu, _ -> Nvml.ask(nvml -> ask(nvml, gpu)));
    }

    static Optional<NvlinkDomain> of(NativeLibrary library, PciAddress gpu) {
        return Nvml.ask(library, nvml -> ask(nvml, gpu));
    }

    private static Optional<NvlinkDomain> ask(Nvml nvml, PciAddress gpu) {
        MemorySegment info = nvml.arena().allocate(FABRIC_INFO);
        info.set(JAVA_INT, 0, (int) FABRIC_INFO.byteSize() | VERSION << 24);
        return nvml.device(gpu)
                .filter(device -> nvml.answers("nvmlDeviceGetGpuFabricInfoV", device, info))
                .flatMap(_ -> read(info));
    }

    private static Optional<NvlinkDomain> read(MemorySegment info) {
        byte[] uuid =
                info.asSlice(offset(FABRIC_INFO, "clusterUuid"), UUID_BYTES).toArray(JAVA_BYTE);
        boolean ready =
                info.get(JAVA_INT, offset(FABRIC_INFO, "status")) == Nvml.SUCCESS
                        && info.get(JAVA_BYTE, offset(FABRIC_INFO, "state")) == STATE_COMPLETED;
        // Zeros where the switches are those of one host.
        return !ready || Arrays.equals(uuid, new byte[UUID_BYTES])
                ? Optional.empty()
                : Optional.of(
                        new NvlinkDomain(
                                HexFormat.of().formatHex(uuid),
                                info.get(JAVA_INT, offset(FABRIC_INFO, "cliqueId"))));
    }

    @Override
    public String toString() {
        return cluster + "." + clique;
    }
}
