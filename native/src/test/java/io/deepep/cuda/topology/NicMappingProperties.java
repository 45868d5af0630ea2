package io.deepep.cuda.topology;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.sysfs.SysfsTree;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.AfterProperty;

/** Hosts of any shape; some are written as a sysfs and read back. */
class NicMappingProperties {
    private static final int TRIES_ON_DISK = 20;

    private final List<Path> folders = new ArrayList<>();

    @AfterProperty
    void delete() throws IOException {
        for (Path folder : folders) {
            try (Stream<Path> all = Files.walk(folder)) {
                for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(path);
                }
            }
        }
    }

    private HostTopology read(HostShape shape) {
        try {
            Path folder = Files.createTempDirectory("sysfs");
            folders.add(folder);
            SysfsTree tree = new SysfsTree(folder);
            shape.write(tree);
            return HostTopology.read(tree.finish());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Map<NicPort, Integer> loads(HostTopology host, NicMapping mapping) {
        Map<NicPort, Integer> loads = new HashMap<>();
        host.nics().forEach(nic -> loads.put(nic, 0));
        for (NicAssignment assignment : mapping.assignments()) {
            assignment.nics().forEach(nic -> loads.merge(nic, 1, Integer::sum));
        }
        return loads;
    }

    @Property(tries = TRIES_ON_DISK)
    void distancesAreThoseOfTheShape(
            @ForAll long seed,
            @ForAll @IntRange(min = 1, max = 4) int sockets,
            @ForAll @IntRange(min = 1, max = 16) int gpus,
            @ForAll @IntRange(max = 16) int nics) {
        HostShape shape = new HostShape(seed, sockets, gpus, nics);
        HostTopology host = read(shape);
        assertThat(host).isEqualTo(shape.topology());
        for (PciDevice gpu : host.gpus()) {
            for (NicPort nic : host.nics()) {
                PciDistance expected = shape.placeOf(gpu).distanceTo(shape.placeOf(nic.device()));
                assertThat(gpu.distanceTo(nic.device())).isEqualTo(expected);
                assertThat(nic.device().distanceTo(gpu)).isEqualTo(expected);
            }
        }
    }

    @Property
    void everyGpuGetsTheNearestThatIsNotFull(
            @ForAll long seed,
            @ForAll @IntRange(min = 1, max = 4) int sockets,
            @ForAll @IntRange(min = 1, max = 16) int gpus,
            @ForAll @IntRange(min = 1, max = 16) int nics) {
        HostTopology host = new HostShape(seed, sockets, gpus, nics).topology();
        NicMapping mapping = NicMapping.of(host, NicOverride.none());
        Map<NicPort, Integer> loads = loads(host, mapping);
        int share = Math.ceilDiv(gpus, nics);
        assertThat(loads.values()).allMatch(load -> load <= share);
        for (NicAssignment assignment : mapping.assignments()) {
            PciDevice gpu = assignment.gpu();
            NicPort first = assignment.nics().getFirst();
            PciDistance distance = gpu.distanceTo(first.device());
            for (NicPort other : host.nics()) {
                PciDistance otherDistance = gpu.distanceTo(other.device());
                if (otherDistance.compareTo(distance) < 0) {
                    assertThat(loads.get(other)).as("nearer, but full").isEqualTo(share);
                } else if (otherDistance == distance && gpus >= nics) {
                    assertThat(loads.get(other))
                            .as("as near, so as busy")
                            .isGreaterThanOrEqualTo(loads.get(first) - 1);
                }
            }
        }
    }

    @Property
    void moreNicsThanGpusAreSharedOutEvenly(
            @ForAll long seed,
            @ForAll @IntRange(min = 1, max = 2) int sockets,
            @ForAll @IntRange(min = 1, max = 4) int gpus,
            @ForAll @IntRange(min = 4, max = 16) int nics) {
        HostTopology host = new HostShape(seed, sockets, gpus, nics).topology();
        NicMapping mapping = NicMapping.of(host, NicOverride.none());
        Map<NicPort, Integer> loads = loads(host, mapping);
        assertThat(loads.values()).allMatch(load -> load <= 1);
        int each = mapping.assignments().getFirst().nics().size();
        assertThat(each).isBetween(1, nics / gpus);
        boolean roomForAll = true;
        for (NicAssignment assignment : mapping.assignments()) {
            PciDevice gpu = assignment.gpu();
            assertThat(assignment.nics()).hasSize(each);
            PciDistance distance = gpu.distanceTo(assignment.nics().getFirst().device());
            assertThat(assignment.nics()).allMatch(n -> gpu.distanceTo(n.device()) == distance);
            roomForAll &=
                    loads.entrySet().stream()
                                    .filter(e -> e.getValue() == 0)
                                    .filter(e -> gpu.distanceTo(e.getKey().device()) == distance)
                                    .count()
                            >= gpus;
        }
        assertThat(roomForAll && each < nics / gpus).as("another round was possible").isFalse();
        assertThat(mapping.nics()).containsExactlyElementsOf(host.nics());
        assertThat(mapping.nics().stream().filter(nic -> mapping.gpusOf(nic).isEmpty()))
                .hasSize(nics - each * gpus);
    }

    @Property
    void nothingDependsOnTheOrderInWhichDevicesAreFound(
            @ForAll long seed,
            @ForAll @IntRange(min = 1, max = 8) int gpus,
            @ForAll @IntRange(max = 8) int nics) {
        HostTopology host = new HostShape(seed, 2, gpus, nics).topology();
        List<PciDevice> shuffledGpus = new ArrayList<>(host.gpus());
        List<NicPort> shuffledNics = new ArrayList<>(host.nics());
        Collections.shuffle(shuffledGpus, new Random(seed));
        Collections.shuffle(shuffledNics, new Random(~seed));
        HostTopology shuffled = new HostTopology(shuffledGpus, shuffledNics, List.of());
        assertThat(NicMapping.of(shuffled, NicOverride.none()))
                .isEqualTo(NicMapping.of(host, NicOverride.none()));
    }
}
