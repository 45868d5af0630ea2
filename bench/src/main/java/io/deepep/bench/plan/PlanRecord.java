package io.deepep.bench.plan;

import io.deepep.EpTopology;
import io.deepep.bench.measure.Build;
import io.deepep.planner.BufferBytes;
import io.deepep.planner.Cluster;
import io.deepep.planner.ModePlan;
import io.deepep.planner.Op;
import io.deepep.planner.OperationPlan;
import io.deepep.planner.Shape;
import java.time.Instant;
import java.util.List;
import java.util.Locale;

/**
 * One planned operation as it is written to JSON. Bytes, rows and rates are of one rank in one
 * direction; times are microseconds.
 */
record PlanRecord(
        String mode,
        String op,
        String dtype,
        int ranks,
        int nodes,
        String runsOn,
        int tokens,
        int hidden,
        int topk,
        int experts,
        String routing,
        long seed,
        int simulatedTokens,
        String profile,
        double nicGbps,
        double nicsPerGpu,
        double nvlinkBytesPerSecond,
        double rdmaBytesPerSecond,
        LinkRecord nvlink,
        LinkRecord rdma,
        String bottleneck,
        double typicalMicros,
        double slowestMicros,
        long nvlBufferBytes,
        long rdmaBufferBytes,
        int maxRecvTokens,
        long nvlBufferBytesForRouting,
        String version,
        String commit,
        String time) {
    /** Rows and bytes over one kind of link: mean over the ranks, and of the busiest rank. */
    record LinkRecord(
            double meanRows,
            double maxRows,
            double meanPayloadBytes,
            double meanBytes,
            double maxBytes) {
        private static LinkRecord of(OperationPlan.LinkBytes bytes) {
            return new LinkRecord(
                    bytes.rows().mean(),
                    bytes.rows().max(),
                    bytes.payloadMean(),
                    bytes.mean(),
                    bytes.max());
        }
    }

    /** The records of some plans, in their order. */
    static List<PlanRecord> of(List<ModePlan> plans, String routing, long seed) {
        Build build = Build.current();
        String time = Instant.now().toString();
        return plans.stream()
                .flatMap(
                        plan ->
                                plan.operations().stream()
                                        .map(op -> of(plan, op, routing, seed, build, time)))
                .toList();
    }

    private static PlanRecord of(
            ModePlan plan,
            OperationPlan operation,
            String routing,
            long seed,
            Build build,
            String time) {
        Cluster cluster = plan.cluster();
        EpTopology topology = cluster.topology();
        Shape shape = plan.shape();
        BufferBytes buffers = plan.buffers();
        Op op = operation.op();
        return new PlanRecord(
                plan.mode().toString(),
                op.toString(),
                plan.dtype(op).name().toLowerCase(Locale.ROOT),
                topology.numRanks(),
                topology.numRdmaRanks(),
                PlanReport.runsOn(plan),
                shape.numTokens(),
                shape.hidden(),
                shape.numTopk(),
                shape.numExperts(),
                routing,
                seed,
                plan.sampledTokens(),
                cluster.profile().toString(),
                cluster.nicGbps(),
                cluster.nicsPerGpu(),
                cluster.nvlink(plan.mode(), op).bytesPerSecond(),
                cluster.rdma(plan.mode(), op).bytesPerSecond(),
                LinkRecord.of(operation.nvlink()),
                LinkRecord.of(operation.rdma()),
                operation.bottleneck().toString(),
                operation.typicalMicros(),
                operation.slowestMicros(),
                buffers.nvl(),
                buffers.rdma(),
                buffers.maxRecvTokens(),
                buffers.nvlForRouting(),
                build.version(),
                build.commit(),
                time);
    }
}
