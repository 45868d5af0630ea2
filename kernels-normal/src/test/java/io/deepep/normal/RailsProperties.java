package io.deepep.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

/** All ranks of a group find ways that fit together, whichever are masked. */
class RailsProperties {
    /** Some ranks of a group. */
    record Case(int nodes, int perNode, Set<Integer> masked) {
        List<Rails> rails() {
            return IntStream.range(0, nodes * perNode).mapToObj(this::railsOf).toList();
        }

        private Rails railsOf(int rank) {
            Masks masks = new Masks(new EpTopology(rank, nodes * perNode, perNode));
            masked.forEach(other -> masks.update(other, true));
            return masks.rails();
        }

        List<Integer> left() {
            return ranks(rank -> !masked.contains(rank));
        }

        List<Integer> ranks(Predicate<Integer> which) {
            return IntStream.range(0, nodes * perNode).boxed().filter(which).toList();
        }

        int maskedOn(int node) {
            return (int) masked.stream().filter(rank -> rank / perNode == node).count();
        }
    }

    @Provide
    Arbitrary<Case> cases() {
        Arbitrary<Integer> nodes = Arbitraries.integers().between(2, 6);
        Arbitrary<Integer> perNode = Arbitraries.integers().between(1, 8);
        return Combinators.combine(nodes, perNode)
                .flatAs(
                        (n, p) ->
                                Arbitraries.integers()
                                        .between(0, n * p - 1)
                                        .set()
                                        .ofMaxSize(n * p - 1)
                                        .map(masked -> new Case(n, p, masked)));
    }

    /** Who sends into a cell is whom its owner expects there, and nobody else sends into it. */
    @Property(tries = 300)
    void bothEndsAgree(@ForAll("cases") Case c) {
        List<Rails> rails = c.rails();
        for (int rank : c.left()) {
            Rails.Ends forwarders = rails.get(rank).forwarders();
            for (int node = 0; node < forwarders.size(); node++) {
                if (forwarders.isUsed(node)) {
                    int forwarder = forwarders.rank(node);
                    assertThat(forwarder / c.perNode).isEqualTo(node);
                    assertThat(c.masked).doesNotContain(forwarder);
                    Rails.Ends homes = rails.get(forwarder).homes();
                    assertThat(homes.rank(forwarders.cell(node))).isEqualTo(rank);
                    assertThat(homes.cell(forwarders.cell(node))).isEqualTo(node);
                }
            }
        }
        for (int rank : c.left()) {
            Rails.Ends homes = rails.get(rank).homes();
            Set<Integer> served = new HashSet<>();
            for (int cell = 0; cell < homes.size(); cell++) {
                if (homes.isUsed(cell)) {
                    assertThat(served.add(homes.rank(cell))).isTrue();
                    Rails.Ends back = rails.get(homes.rank(cell)).forwarders();
                    assertThat(back.rank(rank / c.perNode)).isEqualTo(rank);
                    assertThat(back.cell(rank / c.perNode)).isEqualTo(cell);
                }
            }
        }
    }

    /** Into a node with one masked rank, or none, all tokens find a way. */
    @Property(tries = 300)
    void oneMaskedRankCutsNobodyOff(@ForAll("cases") Case c) {
        List<Rails> rails = c.rails();
        for (int rank : c.left()) {
            for (int other : c.ranks(r -> true)) {
                boolean near = other / c.perNode == rank / c.perNode;
                boolean reached = rails.get(rank).reaches(other);
                if (c.masked.contains(other)) {
                    assertThat(reached).isFalse();
                } else if (near || c.maskedOn(other / c.perNode) <= 1) {
                    assertThat(reached).as("%d to %d", rank, other).isTrue();
                }
            }
        }
    }

    /** The fewest ranks that can be left on a node, and so the most detours into it. */
    @Property(tries = 50)
    void oneMaskedRankOfTwoOrMoreCutsNobodyOff(
            @ForAll @IntRange(min = 2, max = 6) int nodes,
            @ForAll @IntRange(min = 2, max = 4) int perNode,
            @ForAll @IntRange(max = 7) int masked) {
        Case c = new Case(nodes, perNode, Set.of(masked % (nodes * perNode)));
        List<Rails> rails = c.rails();
        for (int rank : c.left()) {
            assertThat(c.left()).allMatch(rails.get(rank)::reaches);
        }
    }

    /** Ranks hear of each other: directly if any is masked, else by their peers alone. */
    @Property(tries = 300)
    void contactsAreMutual(@ForAll("cases") Case c) {
        List<Rails> rails = c.rails();
        for (int rank : c.left()) {
            List<Integer> expected =
                    c.ranks(
                            other ->
                                    other / c.perNode != rank / c.perNode
                                            && !c.masked.contains(other)
                                            && (!c.masked.isEmpty()
                                                    || other % c.perNode == rank % c.perNode));
            assertThat(rails.get(rank).contacts())
                    .containsExactly(expected.stream().mapToInt(Integer::intValue).toArray());
            assertThat(c.ranks(rails.get(rank)::isContact)).isEqualTo(expected);
            assertThat(IntStream.of(rails.get(rank).near()).boxed())
                    .containsExactlyElementsOf(
                            c.ranks(
                                    other ->
                                            other / c.perNode == rank / c.perNode
                                                    && !c.masked.contains(other)));
        }
    }
}
