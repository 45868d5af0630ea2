package io.deepep.bench.measure;

import io.deepep.bench.run.CollectiveCall;
import io.deepep.bench.run.RankTeam;

/**
 * An operation with reused plans, as it is measured.
 *
 * @param subject name, dtype and multiprocessors, as records say them
 * @param pushes whether rows are pushed to other ranks, rather than pulled from them
 * @param wireRowBytes of a row as it travels between GPUs
 * @param linkBytes what the busiest GPU sends to others, or receives from them if that is more
 * @param total what all ranks move
 * @param operation the operation
 * @param verification holds what the latest call gave a rank against the oracle, on that rank's
 *     thread when all ranks' calls are over; throws an {@link AssertionError} if it is wrong
 */
public record MeasuredCall(
        OperationRecord.Subject subject,
        boolean pushes,
        long wireRowBytes,
        long linkBytes,
        OperationBytes total,
        CollectiveCall operation,
        RankTeam.Work verification) {}
