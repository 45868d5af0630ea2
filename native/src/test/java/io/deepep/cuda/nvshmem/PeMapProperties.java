package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.EpTopology;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class PeMapProperties {
    @Property
    void ranksOfAWorldAreItsPesInOrder(
            @ForAll @IntRange(min = 1, max = 8) int nodes,
            @ForAll @IntRange(min = 1, max = 8) int ranksPerNode,
            @ForAll PeMap.World world,
            @ForAll @IntRange(max = 63) int any) {
        int numRanks = nodes * ranksPerNode;
        PeMap map = new PeMap(new EpTopology(any % numRanks, numRanks, ranksPerNode), world);
        int[] included = IntStream.range(0, numRanks).filter(map::includes).toArray();
        assertThat(IntStream.of(included).map(map::peOf))
                .containsExactlyElementsOf(IntStream.range(0, map.numPes()).boxed().toList());
        assertThat(included[map.pe()]).isEqualTo(any % numRanks);
        assertThat(map.rootRank()).isEqualTo(included[0]);
        assertThatThrownBy(() -> map.peOf(numRanks)).isInstanceOf(IllegalArgumentException.class);
    }

    @Property
    void railsCoverAllRanksAndHaveOneRootEach(
            @ForAll @IntRange(min = 1, max = 8) int nodes,
            @ForAll @IntRange(min = 2, max = 8) int ranksPerNode) {
        int numRanks = nodes * ranksPerNode;
        Set<Integer> roots = new HashSet<>();
        for (int rank = 0; rank < numRanks; rank++) {
            EpTopology topology = new EpTopology(rank, numRanks, ranksPerNode);
            PeMap map = new PeMap(topology, PeMap.World.RAIL);
            assertThat(map.numPes()).isEqualTo(nodes);
            assertThat(map.pe()).isEqualTo(topology.rdmaRank());
            roots.add(map.rootRank());
            int neighbour = topology.rankOf(0, (topology.nvlRank() + 1) % ranksPerNode);
            assertThatThrownBy(() -> map.peOf(neighbour))
                    .hasMessageContaining("so it is not a PE of the world of nvlRank=");
        }
        assertThat(roots).hasSize(ranksPerNode);
    }
}
