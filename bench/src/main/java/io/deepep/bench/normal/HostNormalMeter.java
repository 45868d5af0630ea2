package io.deepep.bench.normal;

import io.deepep.bench.measure.MemoryCopy;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.Stopwatch;
import io.deepep.bench.measure.Timing;

/** Against the bandwidth of this machine's memory. */
final class HostNormalMeter extends NormalMeter {
    private final double memoryCopyBytesPerSecond = MemoryCopy.bytesPerSecond();

    HostNormalMeter(NormalSetup setup) {
        super(setup, Stopwatch.ofHost(setup.session().team()));
    }

    @Override
    OperationRecord record(
            NormalOperation operation,
            OperationRecord.Subject subject,
            Timing timing,
            OperationBytes moved) {
        return context.onHost(subject, timing.work(), moved, memoryCopyBytesPerSecond);
    }
}
