package io.deepep.micrometer;

import io.deepep.error.DeepEpException;
import io.deepep.observe.BufferObserver;
import io.deepep.observe.CallFacts;
import io.deepep.observe.CallKind;
import io.deepep.observe.ObservedCall;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Counts and times the calls of buffers in a Micrometer registry:
 *
 * <pre>{@code
 * Buffer.builder(communicator).observer(new DeepEpMeters(registry))...
 * }</pre>
 *
 * One instance serves any number of buffers, and is thread-safe. All meters have the tags {@code
 * mode}, {@code operation} and {@code rank}. The first call of an operation registers its meters,
 * including a counter for each {@link DeepEpException}; only {@code deepep.device.time}, {@code
 * deepep.wait.time}, {@code deepep.expert.*} and counters of other failures appear with their first
 * value. Not counted are values that a backend does not know, and calls that a {@link
 * BufferObserver} does not see, such as replays of CUDA graphs. Calls that failed are counted in
 * times, waits and errors only. Timers have buckets from 5 µs to 1 s.
 *
 * <table>
 * <caption>Meters</caption>
 * <tr><th>name<th>kind<th>further tags<th>what
 * <tr><td>{@code deepep.host.time}<td>timer<td><td>time that host threads spent in the call, see {@link
 *     ObservedCall#hostNanos}
 * <tr><td>{@code deepep.device.time}<td>timer<td><td>time of its kernels on the GPU, see {@link
 *     ObservedCall#deviceNanos}
 * <tr><td>{@code deepep.tokens}<td>counter<td><td>this rank's tokens
 * <tr><td>{@code deepep.rows.received}<td>counter<td><td>rows that this rank received; compare ranks to see the imbalance between them
 * <tr><td>{@code deepep.bytes}<td>counter<td>{@code link}: nvlink or rdma<td>bytes that crossed links for this rank's tokens
 * <tr><td>{@code deepep.wait.time}<td>timer<td>{@code peer}<td>time waited for each rank, one sample per call that waited
 * <tr><td>{@code deepep.expert.tokens}<td>counter<td>{@code expert}: global index<td>tokens that each local expert received,
 *     in normal mode rounded up to the plan's alignment
 * <tr><td>{@code deepep.expert.imbalance}<td>summary<td><td>these tokens of the busiest local expert divided by the
 *     mean, one sample per dispatch
 * <tr><td>{@code deepep.unfinished}<td>counter<td><td>calls whose end the host never waited for
 * <tr><td>{@code deepep.errors}<td>counter<td>{@code error}: class name<td>calls that failed
 * </table>
 */
public final class DeepEpMeters implements BufferObserver {
    private static final String PREFIX = "deepep.";
    private static final String TOKENS = "tokens";

    /** A decode step takes tens of microseconds, a prefill milliseconds, a time-out seconds. */
    private static final Duration[] BUCKETS =
            Stream.of(5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000)
                    .map(micros -> Duration.of(micros, ChronoUnit.MICROS))
                    .toArray(Duration[]::new);

    private final MeterRegistry registry;
    private final Tags common;
    private final Map<Key, Meters> meters = new ConcurrentHashMap<>();

    private record Key(CallKind kind, int rank) {}

    /** Creates meters in {@code registry}. */
    public DeepEpMeters(MeterRegistry registry) {
        this(registry, Tags.empty());
    }

    /**
     * Creates meters in {@code registry} with further tags, such as the name of a model or layer.
     */
    public DeepEpMeters(MeterRegistry registry, Tags common) {
        this.registry = Objects.requireNonNull(registry, "registry");
        this.common = Objects.requireNonNull(common, "common");
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
        private final Counter unfinished;
        private final Map<Integer, Timer> waits = new ConcurrentHashMap<>();
        private final Map<Integer, Counter> experts = new ConcurrentHashMap<>();

        Meters(Key key) {
            tags =
                    common.and("mode", key.kind.mode())
                            .and("operation", key.kind.operation())
                            .and("rank", Integer.toString(key.rank));
            hostTime = timer("host.time", "Time of host threads in a call", tags);
            tokens = counter(TOKENS, TOKENS, "This rank's tokens", tags);
            rowsReceived = counter("rows.received", "rows", "Rows that this rank received", tags);
            nvlinkBytes = bytes("nvlink");
            rdmaBytes = bytes("rdma");
            unfinished =
                    counter(
                            "unfinished",
                            "calls",
                            "Calls whose end the host never waited for",
                            tags);
            // A rate needs the zero before the first failure.
            for (Class<?> error : DeepEpException.class.getPermittedSubclasses()) {
                errors(error.getSimpleName());
            }
        }

        private Timer timer(String name, String description, Tags its) {
            return Timer.builder(PREFIX + name)
                    .description(description)
                    .tags(its)
                    .minimumExpectedValue(BUCKETS[0])
                    .maximumExpectedValue(BUCKETS[BUCKETS.length - 1])
                    .serviceLevelObjectives(BUCKETS)
                    .register(registry);
        }

        private Counter counter(String name, String unit, String description, Tags its) {
            return Counter.builder(PREFIX + name)
                    .baseUnit(unit)
                    .description(description)
                    .tags(its)
                    .register(registry);
        }

        private Counter bytes(String link) {
            String description = "Bytes that crossed links for this rank's tokens";
            return counter("bytes", "bytes", description, tags.and("link", link));
        }

        private Counter errors(String error) {
            return counter("errors", "calls", "Calls that failed", tags.and("error", error));
        }

        void add(ObservedCall call) {
            hostTime.record(call.hostNanos(), TimeUnit.NANOSECONDS);
            if (call.deviceNanos() >= 0) {
                timer("device.time", "Time of a call's kernels on the GPU", tags)
                        .record(call.deviceNanos(), TimeUnit.NANOSECONDS);
            }
            if (call.failure() != null) {
                errors(call.failure().getClass().getSimpleName()).increment();
            } else {
                addRows(call.facts());
                if (!call.finished()) {
                    unfinished.increment();
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
                                                TOKENS,
                                                "Tokens of a local expert",
                                                tags.and("expert", Integer.toString(name))))
                        .increment(counts[local]);
            }
            double mean = Arrays.stream(counts).average().orElse(0);
            if (mean > 0) {
                DistributionSummary.builder(PREFIX + "expert.imbalance")
                        .description("Tokens of the busiest local expert divided by the mean")
                        .tags(tags)
                        .register(registry)
                        .record(Arrays.stream(counts).max().orElseThrow() / mean);
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
                                                    "Waits for a rank",
                                                    tags.and("peer", Integer.toString(name))))
                            .record(nanos[peer], TimeUnit.NANOSECONDS);
                }
            }
        }
    }
}
