package io.deepep.micrometer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.error.RoutingException;
import io.deepep.observe.CallKind;
import io.deepep.observe.ObservedCall;
import io.deepep.spi.RecordedFacts;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.search.RequiredSearch;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The meters of real calls on the host, and of made-up ones. */
@Timeout(60)
@Tag("checkout")
class DeepEpMetersTest {
    private static final int NUM_TOKENS = 6;
    private static final int HIDDEN = 128;
    private static final int NUM_EXPERTS = 4;

    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    private RequiredSearch meter(String name, String... tags) {
        return registry.get(name).tags(tags);
    }

    /** Two ranks; each sends all its tokens to experts 2 and 3, both of rank 1. */
    private void exchange(int firstExpert) throws InterruptedException {
        DeepEpMeters meters = new DeepEpMeters(registry, Tags.of("model", "tiny"));
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        NormalLimits limits = NormalLimits.of(NUM_TOKENS, HIDDEN, 2, NUM_EXPERTS);
                        try (Buffer buffer =
                                        Buffer.builder(communicator)
                                                .normal(limits)
                                                .observer(meters)
                                                .open();
                                Arena arena = Arena.ofShared()) {
                            Tensor x = Tensor.allocate(arena, DType.BF16, NUM_TOKENS, HIDDEN);
                            Tensor topk = Tensor.allocate(arena, DType.I64, NUM_TOKENS, 2);
                            for (int token = 0; token < NUM_TOKENS; token++) {
                                topk.setLong(firstExpert, token, 0);
                                topk.setLong(token == 0 ? -1 : 3, token, 1);
                            }
                            DispatchResult received =
                                    buffer.dispatch(
                                            DispatchPlan.builder(x)
                                                    .topk(topk, null, NUM_EXPERTS)
                                                    .build());
                            buffer.combine(
                                    CombinePlan.builder(received.recvX(), received.handle())
                                            .build());
                        }
                    });
        }
    }

    @Test
    void realCalls() throws InterruptedException {
        exchange(2);
        String[] out = {"mode", "normal", "operation", "dispatch", "rank", "0", "model", "tiny"};
        String[] home = {"mode", "normal", "operation", "combine", "rank", "0", "model", "tiny"};
        assertThat(meter("deepep.host.time", out).timer().count()).isEqualTo(1);
        assertThat(meter("deepep.host.time", home).timer().totalTime(TimeUnit.NANOSECONDS))
                .isPositive();
        assertThat(meter("deepep.tokens", out).counter().count()).isEqualTo(NUM_TOKENS);
        assertThat(meter("deepep.rows.received", out).counter().count()).isZero();
        double bytes = NUM_TOKENS * 2.0 * HIDDEN;
        assertThat(meter("deepep.bytes", out).tag("link", "nvlink").counter().count())
                .isEqualTo(bytes);
        assertThat(meter("deepep.bytes", home).tag("link", "nvlink").counter().count())
                .isEqualTo(bytes);
        assertThat(meter("deepep.bytes", out).tag("link", "rdma").counter().count()).isZero();
    }

    @Test
    void expertLoad() throws InterruptedException {
        exchange(2);
        String[] tags = {"operation", "dispatch", "rank", "1"};
        assertThat(meter("deepep.expert.tokens", tags).tag("expert", "2").counter().count())
                .isEqualTo(2 * NUM_TOKENS);
        assertThat(meter("deepep.expert.tokens", tags).tag("expert", "3").counter().count())
                .isEqualTo(2 * NUM_TOKENS - 2);
        assertThat(meter("deepep.expert.imbalance", tags).summary().mean())
                .isCloseTo(12 / 11.0, within(1e-9));
    }

    /** At once: a buffer only logs what its observers throw. */
    @Test
    void needsARegistry() {
        assertThatThrownBy(() -> new DeepEpMeters(null))
                .isInstanceOf(NullPointerException.class)
                .hasMessage("registry");
    }

    @Test
    void errors() {
        assertThatThrownBy(() -> exchange(NUM_EXPERTS))
                .hasRootCauseInstanceOf(RoutingException.class);
        assertThat(
                        meter("deepep.errors", "operation", "dispatch", "rank", "1")
                                .tag("error", "RoutingException")
                                .counter()
                                .count())
                .isEqualTo(1);
    }

    private static ObservedCall onGpu(CallKind kind, RecordedFacts facts, boolean completed) {
        return new ObservedCall(
                kind, Device.cuda(0), facts.facts(), 4_000, 0, 0, 90_000, completed, null);
    }

    /** A call on a GPU whose end nobody asked for, by a rank that cannot count its rows. */
    @Test
    void whatIsNotKnownIsNotCounted() {
        RecordedFacts facts = new RecordedFacts(new EpTopology(3, 4, 4), null).rows("bf16", 256);
        facts.tokens(5, RecordedFacts.UNKNOWN);
        new DeepEpMeters(registry).observe(onGpu(CallKind.LOW_LATENCY_DISPATCH, facts, false));
        String[] tags = {"mode", "low-latency", "operation", "dispatch", "rank", "3"};
        assertThat(meter("deepep.device.time", tags).timer().totalTime(TimeUnit.MICROSECONDS))
                .isEqualTo(90);
        assertThat(meter("deepep.unfinished", tags).counter().count()).isEqualTo(1);
        assertThat(meter("deepep.tokens", tags).counter().count()).isEqualTo(5);
        assertThat(meter("deepep.rows.received", tags).counter().count()).isZero();
        assertThat(meter("deepep.bytes", tags).tag("link", "nvlink").counter().count()).isZero();
        assertThat(registry.find("deepep.wait.time").meter()).isNull();
        assertThat(registry.find("deepep.expert.tokens").meter()).isNull();
    }

    @Test
    void rowsAndBytesOfBothLinks() {
        RecordedFacts facts = new RecordedFacts(new EpTopology(0, 4, 2), null).rows("bf16", 256);
        facts.tokens(5, 7).links(3, 4);
        new DeepEpMeters(registry).observe(onGpu(CallKind.NORMAL_DISPATCH, facts, true));
        assertThat(meter("deepep.rows.received").counter().count()).isEqualTo(7);
        assertThat(meter("deepep.bytes", "link", "nvlink").counter().count()).isEqualTo(3 * 256);
        assertThat(meter("deepep.bytes", "link", "rdma").counter().count()).isEqualTo(4 * 256);
    }

    @Test
    void waitsByPeer() {
        RecordedFacts facts = new RecordedFacts(new EpTopology(0, 3, 3), new long[] {0, 700, 20});
        ObservedCall call =
                new ObservedCall(
                        CallKind.NORMAL_COMBINE,
                        Device.host(),
                        facts.facts(),
                        500,
                        500,
                        1000,
                        -1,
                        true,
                        null);
        DeepEpMeters meters = new DeepEpMeters(registry);
        meters.observe(call);
        meters.observe(call);
        assertThat(
                        meter("deepep.wait.time", "operation", "combine", "peer", "1")
                                .timer()
                                .totalTime(TimeUnit.NANOSECONDS))
                .isEqualTo(1400);
        assertThat(registry.find("deepep.wait.time").tag("peer", "0").meter()).isNull();
        assertThat(registry.find("deepep.device.time").meter()).isNull();
    }

    @Test
    void failuresAreCountedFromTheFirstCallOn() throws InterruptedException {
        exchange(2);
        for (String error : List.of("DeepEpTimeoutException", "RoutingException")) {
            Counter counter =
                    meter("deepep.errors", "operation", "combine", "rank", "0")
                            .tag("error", error)
                            .counter();
            assertThat(counter.count()).isZero();
            assertThat(counter.getId().getDescription()).isEqualTo("Calls that failed");
        }
        assertThat(meter("deepep.unfinished", "rank", "1", "operation", "combine").counter())
                .satisfies(counter -> assertThat(counter.count()).isZero());
    }

    @Test
    void timersResolveMicroseconds() throws InterruptedException {
        exchange(2);
        assertThat(meter("deepep.host.time").timer().takeSnapshot().histogramCounts())
                .extracting(bucket -> bucket.bucket(TimeUnit.MICROSECONDS))
                .startsWith(5.0, 10.0, 20.0, 50.0)
                .endsWith(1e6);
    }

    /** Every name that the dashboard asks for is one that Prometheus is given. */
    @Test
    void theDashboardAsksForWhatThereIs() throws Exception {
        PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        DeepEpMeters meters = new DeepEpMeters(prometheus);
        RecordedFacts facts = new RecordedFacts(new EpTopology(0, 2, 2), null).rows("bf16", 256);
        facts.tokens(5, 5);
        facts.experts(new int[] {3, 2});
        facts.waits(new long[] {0, 9_000});
        meters.observe(onGpu(CallKind.NORMAL_DISPATCH, facts, true));
        String scraped = prometheus.scrape();
        String dashboard = Files.readString(Path.of("..", "deploy", "grafana.json"));
        List<String> asked =
                Pattern.compile("deepep_\\w+")
                        .matcher(dashboard)
                        .results()
                        .map(MatchResult::group)
                        .distinct()
                        .toList();
        assertThat(asked).hasSizeGreaterThan(6);
        assertThat(asked).allSatisfy(name -> assertThat(scraped).contains("\n" + name + "{"));
    }
}
