package io.deepep.testkit.oracle;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.routing.Tokens;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The check itself: it accepts rank 0's result of the routing worked out by hand, and notices each
 * thing that is wrong with it.
 */
class NormalDispatchCheckTest {
    private static final int HIDDEN = 8;
    private final List<Tokens> tokens =
            List.of(Tokens.bf16(0, 3, HIDDEN, 1), Tokens.bf16(1, 3, HIDDEN, 1));
    private final NormalDispatchCheck check =
            NormalDispatchCheck.of(new NormalOracle(HandMadeRouting.ROUTING), tokens);
    private Tensor x;
    private Tensor idx;
    private Tensor weights;
    private Tensor counts;

    private record Handle(int numTokens, int numRecvTokens, int hidden, int numTopk, int numExperts)
            implements DispatchHandle {
        @Override
        public boolean expanded() {
            return false;
        }
    }

    @BeforeEach
    void makeTheRightResult() {
        x = HostTensors.allocate(DType.BF16, 3, HIDDEN);
        HostTensors.copy(tokens.get(0).x().select(0, 0), x.select(0, 0));
        HostTensors.copy(tokens.get(0).x().select(0, 2), x.select(0, 1));
        HostTensors.copy(tokens.get(1).x().select(0, 0), x.select(0, 2));
        idx = HostTensors.i64(new long[][] {{0, 1}, {-1, 0}, {1, 1}}, 2);
        weights = HostTensors.f32(new float[][] {{.5f, .25f}, {0, .125f}, {.5f, .5f}}, 2);
        counts = HostTensors.allocate(DType.I32, 2);
        counts.setLong(2, 0);
        counts.setLong(3, 1);
    }

    private void check(Handle handle) {
        DispatchResult result =
                new DispatchResult(
                        x, null, idx, weights, counts, null, 3, handle, Event.completed());
        check.check(0, result, UnaryOperator.identity());
    }

    private void check() {
        check(new Handle(3, 3, HIDDEN, 2, 4));
    }

    private void requireMismatch(String message) {
        assertThatThrownBy(this::check)
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining(message);
    }

    @Test
    void acceptsTheRightResult() {
        check();
    }

    @Test
    void noticesADamagedElement() {
        x.setLong(x.getLong(2, 7) ^ 1, 2, 7);
        requireMismatch("channel 7");
    }

    @Test
    void namesTheOwnerOfAMisplacedRow() {
        HostTensors.copy(tokens.get(1).x().select(0, 2), x.select(0, 2));
        requireMismatch("the row begins like rank 1, token 2");
    }

    @Test
    void noticesAWrongIndex() {
        idx.setLong(0, 1, 0);
        requireMismatch("row 1, selection 0: expected -1, saw 0");
    }

    @Test
    void noticesAWrongWeight() {
        weights.setFloat(-0f, 1, 0);
        requireMismatch("row 1, selection 0, weight");
    }

    @Test
    void noticesAWrongCount() {
        counts.setLong(4, 1);
        requireMismatch("numRecvTokensPerExpert[1]: expected 3, saw 4");
    }

    @Test
    void noticesAMissingRow() {
        x = x.slice(0, 0, 2);
        requireMismatch("recvX: expected BF16[3, 8]");
    }

    @Test
    void noticesAWrongHandle() {
        assertThatThrownBy(() -> check(new Handle(3, 3, HIDDEN, 2, 8)))
                .isInstanceOf(OracleMismatch.class)
                .hasMessageContaining("handle.numExperts: expected 4, saw 8");
    }
}
