package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import io.deepep.error.DeepEpUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Optional;

/**
 * How GPUs are linked by NVLink, asked of the driver's management library (NVML).
 *
 * @param driverVersion of the kernel module, for example {@code 580.65.06}
 * @param numLinks for every pair, in the order asked for, the number of links between them,
 *     directly or through switches; 0 for a GPU and itself
 */
public record NvLinks(String driverVersion, List<List<Integer>> numLinks) {
    private static final String LIBRARY = "libnvidia-ml.so.1";
    private static final int SUCCESS = 0;
    private static final int MAX_LINKS = 36;
    private static final int ENABLED = 1;
    private static final int P2P_CAPABILITY_NVLINK = 2;
    private static final int P2P_STATUS_OK = 0;
    private static final int REMOTE_IS_GPU = 0;
    private static final int VERSION_BYTES = 96;

    /** {@code nvmlPciInfo_t}, of which only the last field is read. */
    private static final MemoryLayout PCI_INFO =
            MemoryLayout.structLayout(
                    MemoryLayout.sequenceLayout(16, ValueLayout.JAVA_BYTE).withName("legacy"),
                    MemoryLayout.sequenceLayout(5, JAVA_INT).withName("numbers"),
                    MemoryLayout.sequenceLayout(32, ValueLayout.JAVA_BYTE).withName("busId"));

    private static final long BUS_ID_OFFSET =
            PCI_INFO.byteOffset(MemoryLayout.PathElement.groupElement("busId"));

    /** Copies the rows. */
    public NvLinks {
        numLinks = numLinks.stream().map(List::copyOf).toList();
    }

    /**
     * Asks about GPUs.
     *
     * @return empty where the library is missing or does not answer
     */
    public static Optional<NvLinks> read(List<PciAddress> gpus) {
        return NativeLibrary.find(LIBRARY).flatMap(library -> read(library, gpus));
    }

    static Optional<NvLinks> read(NativeLibrary library, List<PciAddress> gpus) {
        try (Arena arena = Arena.ofConfined()) {
            Nvml nvml = new Nvml(library, arena);
            if (nvml.status(nvml.init) != SUCCESS) {
                return Optional.empty();
            }
            try {
                List<Gpu> opened = gpus.stream().map(gpu -> nvml.open(gpu)).toList();
                List<List<Integer>> matrix =
                        opened.stream()
                                .map(a -> opened.stream().map(b -> nvml.numLinks(a, b)).toList())
                                .toList();
                return Optional.of(new NvLinks(nvml.driverVersion(), matrix));
            } finally {
                nvml.status(nvml.shutdown);
            }
        } catch (DeepEpUnavailableException older) {
            return Optional.empty();
        }
    }

    /** A handle of the library; NULL for a GPU that it does not know. */
    private record Gpu(PciAddress address, MemorySegment handle) {}

    /** The functions used, and room for what they answer. */
    private static final class Nvml {
        final MethodHandle init;
        final MethodHandle shutdown;
        private final MethodHandle driverVersion;
        private final MethodHandle deviceAt;
        private final MethodHandle p2pStatus;
        private final MethodHandle linkState;
        private final MethodHandle remoteType;
        private final MethodHandle remotePci;
        private final Arena arena;
        private final MemorySegment number;
        private final MemorySegment pciInfo;

        Nvml(NativeLibrary library, Arena arena) {
            this.arena = arena;
            init = library.bind("nvmlInit_v2", returningStatus());
            shutdown = library.bind("nvmlShutdown", returningStatus());
            driverVersion =
                    library.bind("nvmlSystemGetDriverVersion", returningStatus(ADDRESS, JAVA_INT));
            deviceAt =
                    library.bind(
                            "nvmlDeviceGetHandleByPciBusId_v2", returningStatus(ADDRESS, ADDRESS));
            p2pStatus =
                    library.bind(
                            "nvmlDeviceGetP2PStatus",
                            returningStatus(ADDRESS, ADDRESS, JAVA_INT, ADDRESS));
            linkState =
                    library.bind(
                            "nvmlDeviceGetNvLinkState",
                            returningStatus(ADDRESS, JAVA_INT, ADDRESS));
            remoteType =
                    library.bind(
                            "nvmlDeviceGetNvLinkRemoteDeviceType",
                            returningStatus(ADDRESS, JAVA_INT, ADDRESS));
            remotePci =
                    library.bind(
                            "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                            returningStatus(ADDRESS, JAVA_INT, ADDRESS));
            number = arena.allocate(JAVA_INT);
            pciInfo = arena.allocate(PCI_INFO);
        }

        private static FunctionDescriptor returningStatus(MemoryLayout... parameters) {
            return FunctionDescriptor.of(JAVA_INT, parameters);
        }

        int status(MethodHandle function, Object... arguments) {
            try {
                return (int) function.invokeWithArguments(arguments);
            } catch (Throwable t) {
                throw CuCall.rethrow(t);
            }
        }

        String driverVersion() {
            MemorySegment text = arena.allocate(VERSION_BYTES);
            return status(driverVersion, text, VERSION_BYTES) == SUCCESS ? text.getString(0) : "";
        }

        Gpu open(PciAddress address) {
            MemorySegment out = arena.allocate(ADDRESS);
            MemorySegment name = arena.allocateFrom(address.toString());
            boolean known = status(deviceAt, name, out) == SUCCESS;
            return new Gpu(address, known ? out.get(ADDRESS, 0) : MemorySegment.NULL);
        }

        int numLinks(Gpu a, Gpu b) {
            boolean known = a.handle.address() != 0 && b.handle.address() != 0;
            if (!known || a.address.equals(b.address)) {
                return 0;
            }
            int asked = status(p2pStatus, a.handle, b.handle, P2P_CAPABILITY_NVLINK, number);
            if (asked != SUCCESS || number.get(JAVA_INT, 0) != P2P_STATUS_OK) {
                return 0;
            }
            int direct = 0;
            for (int link = 0; link < MAX_LINKS; link++) {
                if (isActive(a, link) && remoteAddress(a, link).equals(Optional.of(b.address))) {
                    direct++;
                }
            }
            return direct > 0 ? direct : Math.min(numSwitchLinks(a), numSwitchLinks(b));
        }

        /** Links to switches; a virtual machine may not be told what is at the other end. */
        private int numSwitchLinks(Gpu gpu) {
            int count = 0;
            for (int link = 0; link < MAX_LINKS; link++) {
                boolean toGpu =
                        status(remoteType, gpu.handle, link, number) == SUCCESS
                                && number.get(JAVA_INT, 0) == REMOTE_IS_GPU;
                if (isActive(gpu, link) && !toGpu) {
                    count++;
                }
            }
            return count;
        }

        private boolean isActive(Gpu gpu, int link) {
            return status(linkState, gpu.handle, link, number) == SUCCESS
                    && number.get(JAVA_INT, 0) == ENABLED;
        }

        private Optional<PciAddress> remoteAddress(Gpu gpu, int link) {
            if (status(remotePci, gpu.handle, link, pciInfo) != SUCCESS) {
                return Optional.empty();
            }
            String busId = pciInfo.getString(BUS_ID_OFFSET);
            return PciAddress.find(busId);
        }
    }
}
