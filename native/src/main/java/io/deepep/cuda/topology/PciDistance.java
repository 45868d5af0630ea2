package io.deepep.cuda.topology;

/**
 * What lies between two devices, nearest first; the names are those of {@code nvidia-smi topo -m}.
 */
public enum PciDistance {
    /** At most one PCIe switch. */
    PIX,
    /** Several PCIe switches, but no host bridge. */
    PXB,
    /** A PCIe host bridge: a root complex of one CPU. */
    PHB,
    /** Host bridges of one NUMA node, and the interconnect between them. */
    NODE,
    /** The interconnect between NUMA nodes; also where the NUMA node is not known. */
    SYS
}
