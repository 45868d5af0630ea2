package io.deepep.bench.lowlatency;

import io.deepep.bench.measure.MemoryCopy;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.Stopwatch;
import io.deepep.bench.measure.Timing;
import io.deepep.bench.run.Session;

/** Against the bandwidth of this machine's memory. */
final class HostLowLatencyMeter extends LowLatencyMeter {
    private final double memoryCopyBytesPerSecond = MemoryCopy.bytesPerSecond();

    HostLowLatencyMeter(Session session) {
        super(session, Stopwatch.ofHost(session.team()));
    }

    @Override
    OperationRecord record(
            OperationRecord.Context context,
            LowLatencyOperation operation,
            OperationRecord.Subject subject,
            Timing timing,
            LowLatencyBytes bytes) {
        return context.onHost(
                subject, timing.work(), operation.total(bytes), memoryCopyBytesPerSecond);
    }
}
