package io.deepep.testkit.conformance.normal;

import io.deepep.DType;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Masked ranks of nodes of more ranks than a few. */
@BackendSuite
public record NormalLargeMaskConformance(TestBackend backend) {
    private static NormalLoss loss(
            TestBackend backend, int nodes, int ranksPerNode, Integer... absent) {
        int experts = 2 * nodes * ranksPerNode;
        NormalShape shape = new NormalShape(nodes, ranksPerNode, 5, 128, DType.BF16, 6, experts);
        return new NormalLoss(backend, shape, Set.of(absent));
    }

    private static Stream<NormalLoss> fitting(NormalLoss... losses) {
        return Stream.of(losses).filter(loss -> loss.shape().fits(loss.backend()));
    }

    /** Ranks that come first and last, and forwarders. */
    static Stream<NormalLoss> some(TestBackend backend) {
        return fitting(
                loss(backend, 1, 9, 4),
                loss(backend, 1, 12, 0, 11),
                loss(backend, 2, 9, 12),
                loss(backend, 2, 9, 0, 17),
                loss(backend, 3, 9, 9, 10));
    }

    /** Among them ranks of each word of a mask, and most of a node. */
    static Stream<NormalLoss> many(TestBackend backend) {
        return fitting(
                loss(backend, 1, 40, 0, 31, 32, 39),
                loss(backend, 1, 72, 0, 1, 2, 3, 71),
                loss(backend, 2, 36, 5, 35, 36, 40, 71),
                loss(backend, 8, 9, 0, 16, 71));
    }

    /** One that is waited for in vain. */
    static Stream<NormalLoss> late(TestBackend backend) {
        return fitting(loss(backend, 1, 10, 9), loss(backend, 2, 9, 13));
    }

    /** The others make every kind of call without them; then all are back. */
    @Cases(from = "some")
    public void byHand(NormalLoss loss) {
        loss.byHand();
    }

    @Tag("slow")
    @Cases(from = "many")
    @Timeout(300)
    public void byHandInTheLargest(NormalLoss loss) {
        loss.byHand();
    }

    @Cases(from = "late")
    public void handlesOfOtherMasks(NormalLoss loss) {
        loss.handlesOfOtherMasks();
    }

    @Cases(from = "late")
    public void byTimeout(NormalLoss loss) {
        loss.byTimeout();
    }
}
