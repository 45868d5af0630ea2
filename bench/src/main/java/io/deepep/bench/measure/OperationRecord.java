package io.deepep.bench.measure;

import io.deepep.bench.run.Job;
import java.time.Instant;

/**
 * One measured operation. Times are of the slowest rank in each run; bytes are sums over the ranks,
 * see {@link OperationBytes}; bandwidths are in bytes per second.
 */
public record OperationRecord(
        String backend,
        int ranks,
        int nodes,
        int tokens,
        int hidden,
        int topk,
        int experts,
        String dtype,
        String op,
        int sms,
        int repeats,
        double p50Micros,
        double p99Micros,
        double maxMicros,
        long logicalBytes,
        long wireBytes,
        long nvlinkBytes,
        long rdmaBytes,
        long movedBytes,
        double memoryCopyBytesPerSecond,
        double memoryCopyShare,
        String version,
        String commit,
        String jvm,
        String cpu,
        String time) {
    /** What a bench run has in common, and makes records with. */
    public record Context(String backend, Job job, double memoryCopyBytesPerSecond, Build build) {
        /** The record of one operation. */
        public OperationRecord of(
                String op, String dtype, int sms, Samples samples, OperationBytes bytes) {
            return new OperationRecord(
                    backend,
                    job.numRanks(),
                    job.topology().numRdmaRanks(),
                    job.routing().maxTokens(),
                    job.hidden(),
                    job.routing().numTopk(),
                    job.routing().numExperts(),
                    dtype,
                    op,
                    sms,
                    samples.count(),
                    samples.percentileMicros(50),
                    samples.percentileMicros(99),
                    samples.maxMicros(),
                    bytes.logical(),
                    bytes.wire(),
                    bytes.nvlink(),
                    bytes.rdma(),
                    bytes.moved(),
                    memoryCopyBytesPerSecond,
                    samples.bytesPerSecond(bytes.moved()) / memoryCopyBytesPerSecond,
                    build.version(),
                    build.commit(),
                    build.jvm(),
                    build.cpu(),
                    Instant.now().toString());
        }
    }
}
