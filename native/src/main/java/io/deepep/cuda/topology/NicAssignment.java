package io.deepep.cuda.topology;

import java.util.List;
import java.util.stream.Collectors;

/**
 * The NICs of one GPU.
 *
 * @param gpu the GPU
 * @param nics ports it uses, the nearest first; empty if the host has none to use
 * @param reason why these, for people
 */
public record NicAssignment(PciDevice gpu, List<NicPort> nics, String reason) {
    public NicAssignment {
        nics = List.copyOf(nics);
    }

    /** The value of {@code NVSHMEM_HCA_LIST} for the process that drives the GPU. */
    public String hcaList() {
        return nics.stream().map(NicPort::name).collect(Collectors.joining(","));
    }
}
