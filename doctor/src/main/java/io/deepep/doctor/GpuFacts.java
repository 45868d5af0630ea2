package io.deepep.doctor;

import io.deepep.cuda.topology.PciAddress;
import java.util.List;
import java.util.Optional;

/**
 * What the driver reports about the GPUs that this process may use.
 *
 * @param problem why CUDA cannot be used; empty if it can
 * @param cure what to do about it
 * @param cudaVersion newest CUDA version that the driver supports, such as 13.0; empty without a
 *     driver
 * @param gpus in the driver's order; matrices are in this order too
 * @param peerAccess whether kernels of the row's GPU reach the column's memory
 * @param nvLinks numbers of NVLinks between them; empty if the management library does not report
 *     them
 * @param peerGigabytesPerSecond measured speed of copies from the row's to the column's GPU, in
 *     GB/s; empty if not measured
 * @param peerProblem why it could not be measured; empty otherwise
 */
public record GpuFacts(
        String problem,
        String cure,
        String cudaVersion,
        List<Gpu> gpus,
        List<List<Boolean>> peerAccess,
        List<List<Integer>> nvLinks,
        List<List<Double>> peerGigabytesPerSecond,
        String peerProblem) {
    /**
     * One GPU.
     *
     * @param supportsGpuDirectRdma whether NICs may reach its memory at all
     * @param supportsDmaBuf whether its memory can be exported to them without nvidia-peermem
     * @param nvlinkDomain cluster and clique of an NVLink domain of several hosts; empty if its
     *     domain is this host
     */
    public record Gpu(
            int ordinal,
            String name,
            String pciAddress,
            int computeMajor,
            int computeMinor,
            int numSms,
            long memoryBytes,
            boolean supportsGpuDirectRdma,
            boolean supportsDmaBuf,
            String nvlinkDomain) {
        PciAddress address() {
            return PciAddress.parse(pciAddress);
        }
    }

    public static GpuFacts unavailable(String problem, String cure) {
        return new GpuFacts(problem, cure, "", List.of(), List.of(), List.of(), List.of(), "");
    }

    public boolean isAvailable() {
        return problem.isEmpty();
    }

    /** The GPU at an address, if this process may use it. */
    Optional<Gpu> at(PciAddress address) {
        return gpus.stream().filter(gpu -> gpu.address().equals(address)).findFirst();
    }
}
