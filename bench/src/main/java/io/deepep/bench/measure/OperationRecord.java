package io.deepep.bench.measure;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.deepep.bench.run.Job;
import java.time.Instant;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * One measured operation. Times are of the slowest rank in each run; bytes are sums over the ranks,
 * see {@link OperationBytes}; bandwidths are in bytes per second.
 *
 * @param network what carried rows between nodes of GPUs; left out on one node, on the host
 *     backend, and by old runs
 * @param memoryCopyBytesPerSecond the host backend's yardstick, left out on GPUs
 * @param memoryCopyShare of it, left out on GPUs
 * @param gpu the rest of the story on GPUs, left out on the host backend
 * @param routing who sends how much to whom, with the first record of each number of tokens
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record OperationRecord(
        String backend,
        int ranks,
        int nodes,
        String network,
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
        Double memoryCopyBytesPerSecond,
        Double memoryCopyShare,
        GpuFigures gpu,
        RoutingCounts routing,
        String version,
        String commit,
        String jvm,
        String cpu,
        String time) {
    private static final String ISO_DATE = "2026-01-01";

    /**
     * What is measured: the operation's name, the dtype of its rows as they travel, its
     * multiprocessors. Rows of a low-latency combine are BF16, and the name says how they travel.
     */
    public record Subject(String op, String dtype, int sms) {}

    /** Whether a record that was read has what reports need; they cannot go on without. */
    public boolean hasWhatReportsNeed() {
        return ranks > 0
                && nodes > 0
                && Stream.of(backend, dtype, op, commit, time).allMatch(Objects::nonNull)
                && time.length() >= ISO_DATE.length()
                && Samples.isTime(p50Micros)
                && (gpu == null || (gpu.gpu() != null && gpu.driver() != null))
                && (routing == null || routing.hasWhatReportsNeed());
    }

    /** The rate at the median at which {@code bytes} were moved. */
    public double bytesPerSecond(long bytes) {
        return bytes / p50Micros * 1e6;
    }

    PeerFigures.Figure asFigure() {
        return new PeerFigures.Figure(
                null, op, dtype, ranks, nodes, tokens, hidden, topk, experts, sms, p50Micros);
    }

    /**
     * A record of what was measured now.
     *
     * @param network null where there is none
     * @param memoryCopy bytes per second, on the host backend; null on GPUs
     * @param gpu null on the host backend
     * @param routing null but for the first record of a number of tokens
     */
    static OperationRecord of(
            Job job,
            String network,
            Build build,
            Subject subject,
            Samples samples,
            OperationBytes bytes,
            Double memoryCopy,
            GpuFigures gpu,
            RoutingCounts routing) {
        return new OperationRecord(
                job.placement().device(0).kind().name().toLowerCase(Locale.ROOT),
                job.numRanks(),
                job.topology().numRdmaRanks(),
                network,
                job.routing().maxTokens(),
                job.hidden(),
                job.routing().numTopk(),
                job.routing().numExperts(),
                subject.dtype(),
                subject.op(),
                subject.sms(),
                samples.count(),
                samples.percentileMicros(50),
                samples.percentileMicros(99),
                samples.maxMicros(),
                bytes.logical(),
                bytes.wire(),
                bytes.nvlink(),
                bytes.rdma(),
                bytes.moved(),
                memoryCopy,
                memoryCopy == null ? null : samples.bytesPerSecond(bytes.moved()) / memoryCopy,
                gpu,
                routing,
                build.version(),
                build.commit(),
                build.jvm(),
                build.cpu(),
                Instant.now().toString());
    }
}
