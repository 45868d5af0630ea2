package io.deepep.testkit.conformance.normal;

import io.deepep.DType;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.provider.MethodSource;

/** Masked ranks of nodes of more ranks than a few. */
@BackendSuite
public record NormalLargeMaskConformance(TestBackend backend) implements NormalSuite {
    private static final int ROUNDS = 2;
    private static final int TOKENS = 5;
    private static final int HIDDEN = 128;
    private static final int TOPK = 6;

    /** Some ranks of a group that are lost. */
    record Loss(NormalShape shape, Set<Integer> absent) {
        @Override
        public String toString() {
            return shape.topology().numRdmaRanks()
                    + " x "
                    + shape.topology().numNvlRanks()
                    + " without "
                    + absent.stream().sorted().toList();
        }

        int first() {
            return absent.iterator().next();
        }
    }

    private static Loss loss(int nodes, int ranksPerNode, Integer... absent) {
        int experts = 2 * nodes * ranksPerNode;
        return new Loss(
                new NormalShape(nodes, ranksPerNode, TOKENS, HIDDEN, DType.BF16, TOPK, experts),
                Set.of(absent));
    }

    private static Stream<Loss> fitting(TestBackend backend, Loss... losses) {
        return Stream.of(losses).filter(loss -> loss.shape().fits(backend));
    }

    /** Ranks that come first and last, and forwarders. */
    static Stream<Loss> some(TestBackend backend) {
        return fitting(
                backend,
                loss(1, 9, 4),
                loss(1, 12, 0, 11),
                loss(2, 9, 12),
                loss(2, 9, 0, 17),
                loss(3, 9, 9, 10));
    }

    /** Among them ranks of each word of a mask, and most of a node. */
    static Stream<Loss> many(TestBackend backend) {
        return fitting(
                backend,
                loss(1, 40, 0, 31, 32, 39),
                loss(1, 72, 0, 1, 2, 3, 71),
                loss(2, 36, 5, 35, 36, 40, 71),
                loss(8, 9, 0, 16, 71));
    }

    /** One that is waited for in vain. */
    static Stream<Loss> late(TestBackend backend) {
        return fitting(backend, loss(1, 10, 9), loss(2, 9, 13));
    }

    /** The others make every kind of call without them; then all are back. */
    @Cases
    @MethodSource("some")
    public void byHand(Loss loss) {
        goOn(loss);
    }

    @Tag("slow")
    @Cases
    @MethodSource("many")
    @Timeout(300)
    public void byHandInTheLargest(Loss loss) {
        goOn(loss);
    }

    private void goOn(Loss loss) {
        NormalMaskConformance.byHand(
                backend,
                loss.shape(),
                loss.absent(),
                ROUNDS,
                builder -> NormalNodeMaskConformance.withMasks(backend, builder));
    }

    /** What was dispatched to other ranks than take part now is refused by name. */
    @Cases
    @MethodSource("late")
    public void handlesOfOtherMasks(Loss loss) {
        NormalNodeMaskConformance.handlesOfOtherMasks(backend, loss.shape(), loss.first());
    }

    /** A rank that stops is named, masked, left out and taken back. */
    @Cases
    @MethodSource("late")
    public void byTimeout(Loss loss) {
        NormalMaskConformance.byTimeout(
                backend, loss.shape(), loss.first(), NormalNodeMaskConformance.PATIENCE);
    }
}
