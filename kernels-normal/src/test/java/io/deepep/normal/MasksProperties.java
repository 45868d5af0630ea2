package io.deepep.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import java.util.Set;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** What masks say of a group, of which 32 ranks have bits of one word. */
class MasksProperties {
    /** Some ranks of a group of one node. */
    record Case(int numRanks, Set<Integer> masked) {
        Masks masks() {
            Masks masks = new Masks(new EpTopology(0, numRanks, numRanks));
            masked.forEach(rank -> masks.update(rank, true));
            return masks;
        }

        int[] sorted() {
            return masked.stream().mapToInt(Integer::intValue).sorted().toArray();
        }
    }

    @Provide
    Arbitrary<Case> cases() {
        return Arbitraries.of(1, 2, 8, 31, 32, 33, 64, 72)
                .flatMap(
                        ranks ->
                                Arbitraries.integers()
                                        .between(0, ranks - 1)
                                        .set()
                                        .map(masked -> new Case(ranks, masked)));
    }

    @Property(tries = 200)
    void everyRankHasItsBit(@ForAll("cases") Case c) {
        Masks masks = c.masks();
        int[] words = masks.words(0, c.numRanks);
        for (int rank = 0; rank < c.numRanks; rank++) {
            boolean masked = c.masked.contains(rank);
            assertThat(masks.contains(rank)).isEqualTo(masked);
            assertThat(masks.toArray()[rank]).isEqualTo(masked ? 1 : 0);
            assertThat(words[rank / 32] >>> rank % 32 & 1).isEqualTo(masked ? 1 : 0);
            assertThat(masks.names(masks.word(), rank)).isEqualTo(masked && c.numRanks <= 32);
        }
        assertThat(words).hasSize((c.numRanks + 31) / 32);
        assertThat(masks.words(1, c.numRanks - 1)).isEqualTo(shifted(words, c.numRanks));
    }

    /** The words without the first rank. */
    private static int[] shifted(int[] words, int numRanks) {
        int[] rest = new int[(numRanks - 1 + 31) / 32];
        for (int rank = 1; rank < numRanks; rank++) {
            rest[(rank - 1) / 32] |= (words[rank / 32] >>> rank % 32 & 1) << (rank - 1) % 32;
        }
        return rest;
    }

    /** Ranks compare words: those of other masks differ, and 0 is of none. */
    @Property(tries = 200)
    void wordsTellMasksApart(@ForAll("cases") Case c) {
        Masks masks = c.masks();
        int before = masks.word();
        assertThat(before == 0).isEqualTo(c.masked.isEmpty());
        assertThat(masks.isEmpty()).isEqualTo(c.masked.isEmpty());
        for (int rank = 0; rank < c.numRanks; rank++) {
            masks.update(rank, !c.masked.contains(rank));
            assertThat(masks.word()).as("rank %s", rank).isNotEqualTo(before);
            masks.update(rank, c.masked.contains(rank));
            assertThat(masks.word()).isEqualTo(before);
        }
    }

    /** A call that was refused because masks differ tells whom others have masked. */
    @Property(tries = 200)
    void suspectsAreThoseThatOthersHaveMasked(@ForAll("cases") Case c) {
        Masks own = new Masks(new EpTopology(0, c.numRanks, c.numRanks));
        own.update(0, true);
        int[] news = IntStream.of(c.sorted()).filter(rank -> rank != 0).toArray();
        own.learn(mismatch(HeaderWord.MASKED, own.word(), c.masks().word()));
        assertThat(own.takeSuspects()).isEqualTo(c.numRanks <= 32 ? news : new int[0]);
        assertThat(own.takeSuspects()).isEmpty();
        own.learn(mismatch(HeaderWord.OP, own.word(), c.masks().word()));
        assertThat(own.takeSuspects()).isEmpty();
    }

    private static Fault mismatch(HeaderWord word, int mine, int theirs) {
        return new Fault(
                FaultCode.HEADER_MISMATCH, FaultPhase.NONE, 1, -1, -1, word.value(), mine, theirs);
    }
}
