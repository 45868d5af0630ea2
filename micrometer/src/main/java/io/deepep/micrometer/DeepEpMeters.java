package io.deepep.micrometer;

import io.deepep.observe.BufferObserver;
import io.deepep.observe.CallFacts;
import io.deepep.observe.CallKind;
import io.deepep.observe.ObservedCall;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Counts and times the calls of buffers in a Micrometer registry:
 *
 * <pre>{@code
 * Buffer.builder(communicator).observer(new DeepEpMeters(registry))...
 * }</pre>
 *
 * One instance serves any number of buffers. All meters carry the tags {@code mode}, {@code
 * operation} and {@code rank}. What a backend does not know is not counted.
 *
 * <table>
 * <caption>Meters</caption>
 * <tr><th>name<th>kind<th>further tags<th>what
 * <tr><td>{@code deepep.host.time}<td>timer<td><td>what host threads spent in the call, see {@link
 *     ObservedCall#hostNanos}
 * <tr><td>{@code deepep.device.time}<td>timer<td><td>its kernels on the GPU, see {@link
 *     ObservedCall#deviceNanos}
 * <tr><td>{@code deepep.tokens}<td>counter<td><td>this rank's tokens
 * <tr><td>{@code deepep.rows.received}<td>counter<td><td>rows that arrived at this rank
 * <tr><td>{@code deepep.bytes}<td>counter<td>{@code link}: nvlink or rdma<td>what this rank's
 *     tokens put on links
 * <tr><td>{@code deepep.wait.time}<td>timer<td>{@code peer}<td>waits for each rank, one sample per
 *     call that waited
 * <tr><td>{@code deepep.expert.tokens}<td>counter<td>{@code expert}: index among all<td>tokens that
 *     each local expert got
 * <tr><td>{@code deepep.expert.imbalance}<td>summary<td><td>tokens of the busiest local expert by
 *     their mean, a sample per dispatch
 * <tr><td>{@code deepep.unfinished}<td>counter<td><td>calls whose end the host never asked for
 * <tr><td>{@code deepep.errors}<td>counter<td>{@code error}: class name<td>calls that failed
 * </table>
 */
public final class DeepEpMeters implements BufferObserver {
    private static final String PREFIX = "deepep.";

    private final MeterRegistry registry;
    private final Tags common;
    private final Map<Key, Meters> meters = new ConcurrentHashMap<>();

    private record Key(CallKind kind, int rank) {}

    /** Meters in {@code registry}. */
    public DeepEpMeters(MeterRegistry registry) {
        this(registry, Tags.empty());
    }

    /** Meters in {@code registry} with further tags, as a model's name or a layer's. */
    public DeepEpMeters(MeterRegistry registry, Tags common) {
        this.registry = registry;
        this.common = common;
    }

    @Override
    public void observe(ObservedCall call) {
        int rank = call.facts().topology().rank();
        meters.computeIfAbsent(new Key(call.kind(), rank), Meters::new).add(call);
    }

    /** Those of one operation of one rank. */
    private final class Meters {
        private final Tags tags;
        private final Timer hostTime;
        private final Counter tokens;
        private final Counter rowsReceived;
        private final Counter nvlinkBytes;
        private final Counter rdmaBytes;
        private final Map<Integer, Timer> waits = new ConcurrentHashMap<>();
        private final Map<Integer, Counter> experts = new ConcurrentHashMap<>();

        Meters(Key key) {
            tags =
                    common.and("mode", key.kind.mode())
                            .and("operation", key.kind.operation())
                            .and("rank", Integer.toString(key.rank));
            hostTime = timer("host.time", tags);
            tokens = counter("tokens", tags);
            rowsReceived = counter("rows.received", tags);
            nvlinkBytes = counter("bytes", tags.and("link", "nvlink"));
            rdmaBytes = counter("bytes", tags.and("link", "rdma"));
        }

        private Timer timer(String name, Tags its) {
            return registry.timer(PREFIX + name, its);
        }

        private Counter counter(String name, Tags its) {
            return registry.counter(PREFIX + name, its);
        }

        void add(ObservedCall call) {
            hostTime.record(call.hostNanos(), TimeUnit.NANOSECONDS);
            if (call.deviceNanos() >= 0) {
                timer("device.time", tags).record(call.deviceNanos(), TimeUnit.NANOSECONDS);
            }
            if (call.failure() != null) {
                String error = call.failure().getClass().getSimpleName();
                counter("errors", tags.and("error", error)).increment();
            } else {
                addRows(call.facts());
                if (!call.finished()) {
                    counter("unfinished", tags).increment();
                }
            }
            addWaits(call.facts().waitNanos());
        }

        private void addRows(CallFacts facts) {
            addKnown(tokens, facts.numTokens());
            addKnown(rowsReceived, facts.numRecvTokens());
            addKnown(nvlinkBytes, facts.nvlinkBytes());
            addKnown(rdmaBytes, facts.rdmaBytes());
            if (facts.expertTokens() != null) {
                addExperts(facts.topology().rank(), facts.expertTokens());
            }
        }

        private static void addKnown(Counter counter, long value) {
            if (value > 0) {
                counter.increment((double) value);
            }
        }

        private void addExperts(int rank, int[] counts) {
            for (int local = 0; local < counts.length; local++) {
                int expert = rank * counts.length + local;
                experts.computeIfAbsent(
                                expert,
                                name ->
                                        counter(
                                                "expert.tokens",
                                                tags.and("expert", Integer.toString(name))))
                        .increment(counts[local]);
            }
            double mean = Arrays.stream(counts).average().orElse(0);
            if (mean > 0) {
                DistributionSummary summary = registry.summary(PREFIX + "expert.imbalance", tags);
                summary.record(Arrays.stream(counts).max().orElseThrow() / mean);
            }
        }

        private void addWaits(long[] nanos) {
            for (int peer = 0; nanos != null && peer < nanos.length; peer++) {
                if (nanos[peer] > 0) {
                    waits.computeIfAbsent(
                                    peer,
                                    name ->
                                            timer(
                                                    "wait.time",
                                                    tags.and("peer", Integer.toString(name))))
                            .record(nanos[peer], TimeUnit.NANOSECONDS);
                }
            }
        }
    }
}
