package io.deepep.normal;

import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.testkit.HostTensors;
import org.junit.jupiter.api.Test;

/** Limits of the expanded layout that no group in a test has the memory for. */
class NormalChecksTest {
    private static final int EXPERTS = 14;

    /** Of one of two ranks, with seven experts each, whose tokens select {@code numTopk}. */
    private static void check(int maxRows, int numTopk, int alignment, int worstRows) {
        NormalLimits limits = new NormalLimits(4, 128, 8, EXPERTS, maxRows);
        DispatchPlan plan =
                DispatchPlan.builder(HostTensors.allocate(DType.BF16, 3, 128))
                        .topk(HostTensors.allocate(DType.I64, 3, numTopk), null, EXPERTS)
                        .expanded(true)
                        .expertAlignment(alignment)
                        .numWorstTokens(worstRows)
                        .build();
        new NormalChecks(limits, new EpTopology(0, 2, 2), Device.host()).dispatch(plan);
    }

    @Test
    void expandedRowsAreCountedByAnInt() {
        check((1 << 28) - 1, 8, 1, 0);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> check((1 << 28) - 1, 8, 2, 0))
                .withMessageStartingWith(
                        "expertAlignment=2 can make 2147483654 rows of 7 local experts and"
                                + " 2147483640 selections, more than an int counts; ");
    }

    @Test
    void theWorstCaseIsNoMoreThanCanArrive() {
        check(10, 2, 1, 458_772);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> check(10, 2, 1, 458_773))
                .withMessageStartingWith(
                        "numWorstTokens=458773 exceeds the 458772 rows that can arrive in the"
                                + " expanded layout with any alignment; ");
    }
}
