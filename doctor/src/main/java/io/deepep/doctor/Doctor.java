package io.deepep.doctor;

import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicOverride;
import java.util.List;

/** Examines a machine. Changes nothing; a machine without GPUs or NICs is not an error. */
public final class Doctor {
    private Doctor() {}

    /**
     * Examines a machine.
     *
     * @param version the version of the library, for the report
     * @param networkKernels whether this build has kernels over NVSHMEM
     * @param cuda what the driver reports
     * @param cards what network cards report
     * @param nicMapping the user's mapping of NICs, see {@link NicOverride}; empty for none
     * @throws IllegalArgumentException if the mapping names a GPU or NIC that the machine lacks
     */
    public static DoctorReport examine(
            Machine machine,
            String version,
            boolean networkKernels,
            GpuFacts cuda,
            List<NicFacts> cards,
            String nicMapping) {
        HostTopology host = HostTopology.read(machine.path("sys"));
        NicMapping mapping = NicMapping.of(host, NicOverride.parse(nicMapping));
        return DoctorReport.of(machine, version, networkKernels, host, mapping, cuda, cards);
    }
}
