package io.deepep.doctor;

import io.deepep.cuda.topology.ExcludedNic;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.NicAssignment;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicOverride;
import io.deepep.cuda.topology.NicPort;
import io.deepep.cuda.topology.PciDevice;
import io.deepep.cuda.topology.PciDistance;
import java.util.List;
import java.util.stream.Stream;

/**
 * The complete report about a machine. Its JSON form has the components of this record.
 *
 * @param host the machine, and the software that runs on it
 * @param gpus the host's GPUs and the NICs that serve them, in order of their PCI addresses
 * @param nics ports that the GPUs share
 * @param cards what all RDMA devices report
 * @param excludedNics the other ports, with reasons
 * @param pciDistances the PCI distance between the row's GPU and the column's NIC
 * @param cuda what the driver reports
 * @param findings everything that was checked
 * @param modes what this machine can run
 */
public record DoctorReport(
        HostFacts host,
        List<Gpu> gpus,
        List<Nic> nics,
        List<NicFacts> cards,
        List<ExcludedNic> excludedNics,
        List<List<PciDistance>> pciDistances,
        GpuFacts cuda,
        List<Finding> findings,
        List<Way> modes) {
    /**
     * A GPU of the host.
     *
     * @param numaNode its NUMA node; -1 if not known
     * @param nics names of the ports that serve it
     * @param hcaList what {@code NVSHMEM_HCA_LIST} is set to for its process
     * @param reason why these ports serve it
     */
    public record Gpu(
            int index,
            String pciAddress,
            String name,
            int numaNode,
            List<String> nics,
            String hcaList,
            String reason) {}

    /**
     * A port that carries RDMA.
     *
     * @param numPaths links that one queue pair cannot fill together
     * @param servesGpus indices of the GPUs
     */
    public record Nic(
            String name,
            String pciAddress,
            String linkLayer,
            double gbps,
            String driver,
            int numaNode,
            String bond,
            int numPaths,
            List<Integer> servesGpus) {}

    /**
     * Examines a machine. Changes nothing; a machine without GPUs or NICs is not an error.
     *
     * @param version the version of the library, for the report
     * @param networkKernels whether this build has kernels over NVSHMEM
     * @param cuda what the driver reports
     * @param cards what network cards report
     * @param nicMapping the user's mapping of NICs, see {@link NicOverride}; empty for none
     * @throws IllegalArgumentException if the mapping names a GPU or NIC that the machine lacks
     */
    public static DoctorReport of(
            Machine machine,
            String version,
            boolean networkKernels,
            GpuFacts cuda,
            List<NicFacts> cards,
            String nicMapping) {
        HostTopology host = HostTopology.read(machine.path("sys"));
        NicMapping mapping = NicMapping.of(host, NicOverride.parse(nicMapping));
        List<Finding> findings =
                // Without a GPU nothing else is worth a cure.
                DriverCheck.hasNoGpu(machine, host, cuda)
                        ? List.of(DriverCheck.noGpu())
                        : Stream.of(
                                        DriverCheck.check(machine, cuda),
                                        NicCheck.check(machine, host, mapping),
                                        QueueCheck.check(mapping, cuda, cards),
                                        RdmaCheck.check(machine, cuda),
                                        IbgdaCheck.check(mapping.nics(), cards),
                                        NvshmemCheck.check(machine, networkKernels))
                                .flatMap(List::stream)
                                .toList();
        return new DoctorReport(
                HostFacts.of(machine, version),
                mapping.assignments().stream().map(a -> gpu(host, a, cuda)).toList(),
                mapping.nics().stream().map(nic -> nic(mapping, nic)).toList(),
                cards,
                mapping.excluded(),
                host.gpus().stream().map(gpu -> distances(gpu, mapping.nics())).toList(),
                cuda,
                findings,
                Way.all(findings));
    }

    private static List<PciDistance> distances(PciDevice gpu, List<NicPort> nics) {
        return nics.stream().map(nic -> gpu.distanceTo(nic.device())).toList();
    }

    private static Gpu gpu(HostTopology host, NicAssignment assignment, GpuFacts cuda) {
        PciDevice gpu = assignment.gpu();
        return new Gpu(
                host.gpuIdx(gpu.address()),
                gpu.address().toString(),
                cuda.at(gpu.address()).map(GpuFacts.Gpu::name).orElse("not visible to CUDA"),
                gpu.numaNode().orElse(-1),
                assignment.nics().stream().map(NicPort::name).toList(),
                assignment.hcaList(),
                assignment.reason());
    }

    private static Nic nic(NicMapping mapping, NicPort nic) {
        return new Nic(
                nic.name(),
                nic.device().address().toString(),
                nic.linkLayer().toString(),
                nic.gbps(),
                nic.driver(),
                nic.device().numaNode().orElse(-1),
                nic.bond().map(bond -> bond.name() + " " + bond.mode()).orElse(""),
                nic.numPaths(),
                mapping.gpusOf(nic));
    }
}
