package io.deepep.cuda;

import static io.deepep.cuda.driver.CuStructs.offset;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
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
        return KNOWN.computeIfAbsent(
                gpu, _ -> NativeLibrary.find(Nvml.LIBRARY).flatMap(library -> of(library, gpu)));
    }

    static Optional<NvlinkDomain> of(NativeLibrary library, PciAddress gpu) {
        return Nvml.ask(library, nvml -> ask(nvml, gpu)).flatMap(found -> found);
    }

    private static Optional<NvlinkDomain> ask(Nvml nvml, PciAddress gpu) {
        var fabricInfo = nvml.bind("nvmlDeviceGetGpuFabricInfoV", ADDRESS, ADDRESS);
        MemorySegment device = nvml.device(gpu);
        MemorySegment info = nvml.arena().allocate(FABRIC_INFO);
        info.set(JAVA_INT, 0, (int) FABRIC_INFO.byteSize() | VERSION << 24);
        if (device.address() == 0 || nvml.status(fabricInfo, device, info) != Nvml.SUCCESS) {
            return Optional.empty();
        }
        long at = offset(FABRIC_INFO, "clusterUuid");
        byte[] uuid = info.asSlice(at, UUID_BYTES).toArray(JAVA_BYTE);
        boolean set = false;
        for (byte each : uuid) {
            set |= each != 0; // zeros where the switches are those of one host
        }
        boolean ready =
                info.get(JAVA_INT, offset(FABRIC_INFO, "status")) == Nvml.SUCCESS
                        && info.get(JAVA_BYTE, offset(FABRIC_INFO, "state")) == STATE_COMPLETED;
        return set && ready
                ? Optional.of(
                        new NvlinkDomain(
                                HexFormat.of().formatHex(uuid),
                                info.get(JAVA_INT, offset(FABRIC_INFO, "cliqueId"))))
                : Optional.empty();
    }

    @Override
    public String toString() {
        return cluster + "." + clique;
    }
}
