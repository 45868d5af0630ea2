package io.deepep.bench.measure;

import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.bench.run.CollectiveCall;
import java.util.function.IntConsumer;

/**
 * An operation with reused plans, as it is measured.
 *
 * @param subject name, dtype and multiprocessors, as records say them
 * @param pushes whether rows are pushed to other ranks, rather than pulled from them
 * @param wireRowBytes of a row as it travels between GPUs
 * @param linkBytes what the busiest GPU sends to others, or receives from them if that is more
 * @param total what all ranks move
 * @param each the operation
 * @param verification holds what the latest call gave a rank against the oracle
 */
public record MeasuredCall(
        OperationRecord.Subject subject,
        boolean pushes,
        long wireRowBytes,
        long linkBytes,
        OperationBytes total,
        CollectiveCall each,
        IntConsumer verification)
        implements CollectiveCall {
    @Override
    public Event call(int rank, CallOptions options) {
        return each.call(rank, options);
    }

    /**
     * Verifies what {@code rank} got, on that rank's thread. All ranks' calls are over.
     *
     * @throws AssertionError if it is wrong
     */
    public void verify(int rank) {
        verification.accept(rank);
    }
}
