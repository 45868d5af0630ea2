package io.deepep.doctor;

import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicOverride;
import java.util.List;

/** Looks at a machine. Changes nothing, and a machine that has nothing is no error. */
public final class Doctor {
    private Doctor() {}

    /**
     * Examines.
     *
     * @param version of what is to run here, for the report
     * @param networkKernels whether this build has kernels over NVSHMEM
     * @param cuda what the driver says
     * @param cards what network cards say
     * @param nicMapping the user's mapping of NICs, see {@link NicOverride}; empty for none
     * @throws IllegalArgumentException if the mapping names what the machine has not
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
