package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.driver.CuStructs;
import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

/** How GPUs are linked by NVLink, asked of the driver's management library (NVML). */
public final class NvLinks {
    private static final int P2P_CAPABILITY_NVLINK = 2;
    private static final int P2P_STATUS_OK = 0;
    private static final int REMOTE_IS_GPU = 0;

    /** {@code nvmlPciInfo_t}, of which only the last field is read. */
    private static final StructLayout PCI_INFO =
            MemoryLayout.structLayout(
                    MemoryLayout.sequenceLayout(16, JAVA_BYTE).withName("legacy"),
                    MemoryLayout.sequenceLayout(5, JAVA_INT).withName("numbers"),
                    MemoryLayout.sequenceLayout(32, JAVA_BYTE).withName("busId"));

    private static final long BUS_ID_OFFSET = CuStructs.offset(PCI_INFO, "busId");

    private final Nvml nvml;

    /** Where the library writes a number. */
    private final MemorySegment number;

    private final MemorySegment pciInfo;

    private NvLinks(Nvml nvml) {
        this.nvml = nvml;
        this.number = nvml.arena().allocate(JAVA_INT);
        this.pciInfo = nvml.arena().allocate(PCI_INFO);
    }

    /** A GPU, and the library's handle of it. */
    private record Gpu(PciAddress address, Optional<MemorySegment> handle) {}

    /**
     * For every pair of GPUs, in the order asked for, the number of links between them, directly or
     * through switches; 0 for a GPU and itself.
     *
     * @return empty where the library is missing or does not answer
     */
    public static Optional<List<List<Integer>>> between(List<PciAddress> gpus) {
        return Nvml.ask(nvml -> new NvLinks(nvml).matrix(gpus));
    }

    static Optional<List<List<Integer>>> between(NativeLibrary library, List<PciAddress> gpus) {
        return Nvml.ask(library, nvml -> new NvLinks(nvml).matrix(gpus));
    }

    private Optional<List<List<Integer>>> matrix(List<PciAddress> gpus) {
        List<Gpu> opened = gpus.stream().map(gpu -> new Gpu(gpu, nvml.device(gpu))).toList();
        return Optional.of(
                opened.stream()
                        .map(a -> opened.stream().map(b -> numLinks(a, b)).toList())
                        .toList());
    }

    private int numLinks(Gpu a, Gpu b) {
        if (a.handle.isEmpty() || b.handle.isEmpty() || a.address.equals(b.address)) {
            return 0;
        }
        MemorySegment from = a.handle.get();
        MemorySegment to = b.handle.get();
        boolean linked =
                nvml.answers("nvmlDeviceGetP2PStatus", from, to, P2P_CAPABILITY_NVLINK, number)
                        && number.get(JAVA_INT, 0) == P2P_STATUS_OK;
        if (!linked) {
            return 0;
        }
        int direct = count(from, link -> leadsTo(b.address, from, link));
        return direct > 0 ? direct : Math.min(numSwitchLinks(from), numSwitchLinks(to));
    }

    /** Links to switches; a virtual machine may not be told what is at the other end. */
    private int numSwitchLinks(MemorySegment gpu) {
        return count(
                gpu,
                link ->
                        !nvml.answers("nvmlDeviceGetNvLinkRemoteDeviceType", gpu, link, number)
                                || number.get(JAVA_INT, 0) != REMOTE_IS_GPU);
    }

    private int count(MemorySegment gpu, Predicate<Integer> kind) {
        return (int) nvml.activeLinks(gpu).stream().filter(kind).count();
    }

    private boolean leadsTo(PciAddress peer, MemorySegment gpu, int link) {
        return nvml.answers("nvmlDeviceGetNvLinkRemotePciInfo_v2", gpu, link, pciInfo)
                && PciAddress.find(pciInfo.getString(BUS_ID_OFFSET)).equals(Optional.of(peer));
    }
}
