package io.deepep.cuda.topology;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Which NICs serve which GPU of a host, decided for all GPUs of the host at once. Every process
 * computes it from the same facts and comes to the same result, and then tells NVSHMEM its own part
 * ({@link NicAssignment#hcaList}). NVSHMEM itself cannot balance: in normal mode each rail is a
 * world of its own, and every process of a host believes that it is alone there.
 *
 * @param assignments one per GPU, in order of their PCI addresses
 * @param nics ports that GPUs share, in order of their PCI addresses; some may be left over
 * @param excluded the host's other ports, with reasons
 */
public record NicMapping(
        List<NicAssignment> assignments, List<NicPort> nics, List<ExcludedNic> excluded) {
    public NicMapping {
        assignments = List.copyOf(assignments);
        nics = List.copyOf(nics);
        excluded = List.copyOf(excluded);
    }

    /**
     * Maps the NICs of a host.
     *
     * @param override goes before what is computed
     * @throws IllegalArgumentException if it names what the host has not, or a port that is down
     */
    public static NicMapping of(HostTopology topology, NicOverride override) {
        NicSelection selection = new NicSelection(topology);
        NicAssigner assigner = new NicAssigner(selection.ports());
        Map<PciDevice, List<NicPort>> given = new OverrideResolver(topology, override).resolve();
        given.forEach(assigner::preset);
        assigner.assign(topology.gpus());
        if (given.isEmpty()) {
            assigner.assignMore(topology.gpus());
        }
        List<NicAssignment> assignments = new ArrayList<>();
        for (PciDevice gpu : topology.gpus()) {
            String reason =
                    given.containsKey(gpu)
                            ? "given by the user"
                            : reason(topology, selection, assigner, gpu);
            assignments.add(new NicAssignment(gpu, assigner.of(gpu), reason));
        }
        return new NicMapping(
                assignments,
                topology.nics().stream()
                        .filter(nic -> selection.ports().contains(nic) || assigner.load(nic) > 0)
                        .toList(),
                selection.excluded().stream().filter(nic -> !assigner.isUsed(nic.name())).toList());
    }

    /**
     * The NICs of a GPU.
     *
     * @throws IllegalArgumentException if the host has no such GPU
     */
    public NicAssignment of(PciAddress gpu) {
        return assignments.stream()
                .filter(assignment -> assignment.gpu().address().equals(gpu))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(missing(gpu)));
    }

    private String missing(PciAddress gpu) {
        return "there is no GPU at %s in sysfs; this host has %s"
                .formatted(gpu, OverrideResolver.listed(assignments, a -> a.gpu().address()));
    }

    /** The numbers of the GPUs that a port serves; none for one left over. */
    public List<Integer> gpusOf(NicPort nic) {
        return IntStream.range(0, assignments.size())
                .filter(gpu -> assignments.get(gpu).nics().contains(nic))
                .boxed()
                .toList();
    }

    private static String reason(
            HostTopology topology, NicSelection selection, NicAssigner assigner, PciDevice gpu) {
        if (assigner.of(gpu).isEmpty()) {
            return "this host has no NIC to use";
        }
        NicPort first = assigner.of(gpu).getFirst();
        PciDistance distance = NicAssigner.distance(gpu, first);
        PciDistance least =
                selection.ports().stream()
                        .map(port -> NicAssigner.distance(gpu, port))
                        .min(Comparator.naturalOrder())
                        .orElseThrow();
        String why =
                distance == least
                        ? distance + ", the nearest"
                        : "%s, because all at %s serve as many GPUs as they should"
                                .formatted(distance, least);
        String others =
                topology.gpus().stream()
                        .filter(other -> !other.equals(gpu) && assigner.of(other).contains(first))
                        .map(other -> "gpu" + topology.gpuIdx(other.address()))
                        .collect(Collectors.joining(", "));
        return others.isEmpty() ? why : why + "; shared with " + others;
    }
}
