package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.CombineFormat;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.testkit.Programs;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Emulated GPUs whose blocks have less shared memory than those of data centres. */
class LittleSharedMemoryTest {
    private static final int NUM_RANKS = 2;
    private static final String SAID = "rank: exchanged";

    /** The driver reads how its GPUs are once in a process. */
    @Test
    @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void exchangesLargeRows() throws Exception {
        EmulatedGpus.require("GPUs with less shared memory");
        ProcessBuilder builder =
                Programs.java(
                        Program.class, List.of("-Xmx512m", "--add-modules=jdk.incubator.vector"));
        builder.environment().put("DEEPEP_EMULATOR_SHARED_KIB", "99");
        String said = Programs.run(builder).requireSuccess();
        assertThat(said.lines().filter(SAID::equals)).hasSize(NUM_RANKS);
    }

    /** The ranks, as threads. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) {
            TestBackend backend = TestBackends.load().named(BufferTestBackends.CUDA.name());
            EpTopology topology = Ranks.topology(1, NUM_RANKS);
            LowLatencyShape shape = LowLatencyShape.of(topology, 4, 7168, 4, 8);
            NormalWorld world = NormalWorld.bf16(RoutingSpec.of(NUM_RANKS, 8, 8, 4), 9216);
            Ranks.run(
                    backend,
                    topology,
                    builder -> builder.normal(world.limits()).lowLatency(shape.limits()),
                    context -> {
                        NormalRank rank = new NormalRank(context, world);
                        rank.combineFp8(rank.dispatch().handle());
                        rank.roundTrip(rank.plan());
                        check(shape.rank(context, 0));
                        context.meet();
                        System.out.println(SAID);
                    });
        }

        private static void check(LowLatencyRank rank) {
            for (CombineFormat format : CombineFormat.values()) {
                LowLatencyHandle handle = rank.dispatchWeighted(LowLatencyFormat.FP8).handle();
                if (format == CombineFormat.BF16) {
                    assertThatThrownBy(() -> rank.combinePreReduced(handle))
                            .hasMessageContaining("preReduced needs ")
                            .hasMessageEndingWith("; combine without it");
                }
                rank.combine(handle, format);
            }
        }
    }
}
