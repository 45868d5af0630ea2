package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.bench.lowlatency.LowLatencyBench;
import io.deepep.bench.measure.OperationOptions;
import io.deepep.bench.normal.NormalBench;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.RankSource;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/**
 * Benches that take the two nodes of one host for two hosts: a node's ranks then have no memory of
 * the other's to meet by.
 */
final class CudaHostsTest {
    private static final RoutingSpec RECIPE = RoutingSpec.of(4, 5, 8, 2);

    private final OperationOptions options = new OperationOptions();

    @BeforeEach
    void needsCuda() {
        CudaLowLatencySoakTest.requireCuda();
    }

    private Job job(int sms, String... operations) {
        CommandLine.populateCommand(
                options,
                "--warmups=1",
                "--repeats=2",
                "--operations=" + String.join(",", operations));
        options.validate();
        return new Job(
                new Placement(1, 2, ""),
                new EpTopology(0, 4, 2),
                Network.peerMemory(),
                RECIPE.generate(),
                RECIPE,
                256,
                Duration.ofSeconds(60),
                false,
                List.of(sms));
    }

    private static void requireNoCopies(Predicate<Console> bench) {
        assertThat(CommandLines.printed(console -> assertThat(bench.test(console)).isTrue()))
                .contains("on 2 hosts", "no bare copy", "links GB/s", " passed, 0 failed")
                .doesNotContain("of best copy", "of copy, same sms");
    }

    @Test
    void normalMode() {
        Job job = job(4, "dispatch-cached", "combine-zero-copy");
        requireNoCopies(
                console -> NormalBench.run(console, job, options, null, RankSource::inProcess));
    }

    @Test
    void lowLatencyMode() {
        Job job = job(2, "ll-dispatch", "ll-combine-zero-copy");
        requireNoCopies(
                console ->
                        LowLatencyBench.run(
                                console, job, List.of(5), options, RankSource::inProcess));
    }
}
