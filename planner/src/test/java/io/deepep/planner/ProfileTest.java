package io.deepep.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.deepep.planner.Reference.Outcome;
import java.util.List;
import java.util.function.ToDoubleFunction;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;

/** Solves the profiles' numbers again, from the rows that their documentation names. */
final class ProfileTest {
    private static final double LINE_RATE = 400e9 / 8;
    private static final Percentage ROUNDING = Percentage.withPercentage(0.5);

    /** The cost for which both rows take what was measured. */
    private static LinkCost solve(List<Outcome> rows, ToDoubleFunction<Outcome> bytes) {
        assertThat(rows).hasSize(2).allMatch(row -> row.time().fitted());
        double fewer = bytes.applyAsDouble(rows.getFirst());
        double more = bytes.applyAsDouble(rows.getLast());
        double micros = rows.getLast().measuredMicros() - rows.getFirst().measuredMicros();
        double perMicro = (more - fewer) / micros;
        return new LinkCost(rows.getFirst().measuredMicros() - fewer / perMicro, perMicro * 1e6);
    }

    private static double nvlink(Outcome row) {
        return row.plan().nvlink().mean();
    }

    private static double rdma(Outcome row) {
        return row.plan().rdma().mean();
    }

    @Test
    void h800NvlinkIsThatOfEightRanks() {
        LinkCost normal =
                solve(References.deepEpV1Normal().getFirst().predict(), ProfileTest::nvlink);
        Profile.Costs costs = KnownProfile.H800_DEEPEP_V1.costs(Mode.NORMAL, Op.DISPATCH);
        assertThat(costs.nvlinkBytesPerSecond()).isCloseTo(normal.bytesPerSecond(), ROUNDING);
        assertThat(costs.nvlinkMicros()).isCloseTo(normal.fixedMicros(), within(0.1));
        assertThat(costs.rdmaMicros()).isEqualTo(costs.nvlinkMicros());
        LinkCost lowLatency =
                solve(References.deepEpV1LowLatency().getFirst().predict(), ProfileTest::nvlink);
        Profile.Costs ll = KnownProfile.H800_DEEPEP_V1.costs(Mode.LOW_LATENCY, Op.COMBINE);
        assertThat(ll.nvlinkBytesPerSecond()).isCloseTo(lowLatency.bytesPerSecond(), ROUNDING);
        assertThat(ll.nvlinkMicros()).isCloseTo(lowLatency.fixedMicros(), within(0.1));
    }

    @Test
    void lowLatencyRdmaIsThatOf256Ranks() {
        LinkCost solved =
                solve(References.deepEpV1LowLatency().getLast().predict(), ProfileTest::rdma);
        assertThat(KnownProfile.LOW_LATENCY_RDMA_SHARE)
                .isCloseTo(solved.bytesPerSecond() / LINE_RATE, ROUNDING);
        assertThat(KnownProfile.LOW_LATENCY_RDMA_MICROS)
                .isCloseTo(solved.fixedMicros(), within(0.1));
    }

    @Test
    void normalRdmaShareIsThatOfTheDispatchAmong32Ranks() {
        Outcome dispatch = References.deepEpV1Normal().get(2).predict().getFirst();
        assertThat(dispatch.time().fitted()).isTrue();
        double fixed = KnownProfile.H800_DEEPEP_V1.costs(Mode.NORMAL, Op.DISPATCH).rdmaMicros();
        double perSecond = rdma(dispatch) / (dispatch.measuredMicros() - fixed) * 1e6;
        assertThat(KnownProfile.NORMAL_RDMA_SHARE).isCloseTo(perSecond / LINE_RATE, ROUNDING);
    }

    @Test
    void oursIsFittedToOneTokenAlone() {
        List<Reference> fitted =
                References.all().stream()
                        .filter(each -> each.profile() == KnownProfile.H200)
                        .filter(each -> each.times().stream().anyMatch(Reference.Time::fitted))
                        .toList();
        assertThat(fitted).hasSize(3);
        for (Reference reference : fitted) {
            assertThat(reference.shape().numTokens()).isOne();
            for (Outcome row : reference.predict()) {
                Profile.Costs costs = KnownProfile.H200.costs(reference.mode(), row.time().op());
                assertThat(costs.nvlinkMicros()).isEqualTo(row.measuredMicros());
            }
        }
    }

    @Test
    void nothingElseIsFitted() {
        assertThat(
                        References.all().stream()
                                .flatMap(each -> each.times().stream())
                                .filter(Reference.Time::fitted))
                .hasSize(11);
    }
}
