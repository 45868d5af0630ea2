package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.driver.CuStructs;
import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

/**
 * How GPUs are linked by NVLink, asked of the driver's management library (NVML).
 *
 * @param driverVersion of the kernel module, for example {@code 580.65.06}
 * @param numLinks for every pair, in the order asked for, the number of links between them,
 *     directly or through switches; 0 for a GPU and itself
 */
public record NvLinks(String driverVersion, List<List<Integer>> numLinks) {
    private static final int P2P_CAPABILITY_NVLINK = 2;
    private static final int P2P_STATUS_OK = 0;
    private static final int REMOTE_IS_GPU = 0;
    private static final int VERSION_BYTES = 96;

    /** {@code nvmlPciInfo_t}, of which only the last field is read. */
    private static final StructLayout PCI_INFO =
            MemoryLayout.structLayout(
                    MemoryLayout.sequenceLayout(16, ValueLayout.JAVA_BYTE).withName("legacy"),
                    MemoryLayout.sequenceLayout(5, JAVA_INT).withName("numbers"),
                    MemoryLayout.sequenceLayout(32, ValueLayout.JAVA_BYTE).withName("busId"));

    private static final long BUS_ID_OFFSET = CuStructs.offset(PCI_INFO, "busId");

    public NvLinks {
        numLinks = numLinks.stream().map(List::copyOf).toList();
    }

    /**
     * Asks about GPUs.
     *
     * @return empty where the library is missing or does not answer
     */
    public static Optional<NvLinks> read(List<PciAddress> gpus) {
        return NativeLibrary.find(Nvml.LIBRARY).flatMap(library -> read(library, gpus));
    }

    static Optional<NvLinks> read(NativeLibrary library, List<PciAddress> gpus) {
        return Nvml.ask(
                library,
                nvml -> {
                    Questions questions = new Questions(nvml);
                    List<Gpu> opened =
                            gpus.stream().map(gpu -> new Gpu(gpu, nvml.device(gpu))).toList();
                    List<List<Integer>> matrix =
                            opened.stream()
                                    .map(
                                            a ->
                                                    opened.stream()
                                                            .map(b -> questions.numLinks(a, b))
                                                            .toList())
                                    .toList();
                    return new NvLinks(questions.driverVersion(), matrix);
                });
    }

    /** A handle of the library; NULL for a GPU that it does not know. */
    private record Gpu(PciAddress address, MemorySegment handle) {}

    /** The functions used, and room for what they answer. */
    private static final class Questions {
        private final Nvml nvml;
        private final MethodHandle driverVersion;
        private final MethodHandle p2pStatus;
        private final MethodHandle remoteType;
        private final MethodHandle remotePci;
        private final MemorySegment number;
        private final MemorySegment pciInfo;

        Questions(Nvml nvml) {
            this.nvml = nvml;
            driverVersion = nvml.bind("nvmlSystemGetDriverVersion", ADDRESS, JAVA_INT);
            p2pStatus = nvml.bind("nvmlDeviceGetP2PStatus", ADDRESS, ADDRESS, JAVA_INT, ADDRESS);
            remoteType =
                    nvml.bind("nvmlDeviceGetNvLinkRemoteDeviceType", ADDRESS, JAVA_INT, ADDRESS);
            remotePci =
                    nvml.bind("nvmlDeviceGetNvLinkRemotePciInfo_v2", ADDRESS, JAVA_INT, ADDRESS);
            number = nvml.arena().allocate(JAVA_INT);
            pciInfo = nvml.arena().allocate(PCI_INFO);
        }

        String driverVersion() {
            MemorySegment text = nvml.arena().allocate(VERSION_BYTES);
            int status = nvml.status(driverVersion, text, VERSION_BYTES);
            return status == Nvml.SUCCESS ? text.getString(0) : "";
        }

        int numLinks(Gpu a, Gpu b) {
            boolean known = a.handle.address() != 0 && b.handle.address() != 0;
            if (!known || a.address.equals(b.address)) {
                return 0;
            }
            int asked = nvml.status(p2pStatus, a.handle, b.handle, P2P_CAPABILITY_NVLINK, number);
            if (asked != Nvml.SUCCESS || number.get(JAVA_INT, 0) != P2P_STATUS_OK) {
                return 0;
            }
            int direct = count(a, link -> remoteAddress(a, link).equals(Optional.of(b.address)));
            return direct > 0 ? direct : Math.min(numSwitchLinks(a), numSwitchLinks(b));
        }

        /** Links to switches; a virtual machine may not be told what is at the other end. */
        private int numSwitchLinks(Gpu gpu) {
            return count(
                    gpu,
                    link ->
                            nvml.status(remoteType, gpu.handle, link, number) != Nvml.SUCCESS
                                    || number.get(JAVA_INT, 0) != REMOTE_IS_GPU);
        }

        private int count(Gpu gpu, Predicate<Integer> kind) {
            return (int) nvml.activeLinks(gpu.handle).stream().filter(kind).count();
        }

        private Optional<PciAddress> remoteAddress(Gpu gpu, int link) {
            if (nvml.status(remotePci, gpu.handle, link, pciInfo) != Nvml.SUCCESS) {
                return Optional.empty();
            }
            return PciAddress.find(pciInfo.getString(BUS_ID_OFFSET));
        }
    }
}
