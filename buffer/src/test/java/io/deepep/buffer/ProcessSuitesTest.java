package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Ranks;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * A case that fails in one process fails in all, and those after it do not: wherever processes left
 * it, they meet again.
 */
@Execution(ExecutionMode.CONCURRENT) // its case is other processes
class ProcessSuitesTest {
    private static final EpTopology PAIR = Ranks.topology(1, 2);

    /** Cases that processes run, not this one. */
    @BackendSuite
    @EnabledIf("inProcesses")
    @TestMethodOrder(MethodOrderer.OrderAnnotation.class)
    record Cases(TestBackend backend) {
        static boolean inProcesses() {
            return !Ranks.areThreads();
        }

        /** The other rank waits for it in a barrier. */
        @Test
        @Order(1)
        void oneFailsAndTheOtherWaits() {
            Ranks.runBare(
                    backend,
                    PAIR,
                    communicator -> {
                        assertThat(communicator.rank()).as("the rank").isZero();
                        communicator.barrier(Duration.ofHours(1));
                        communicator.barrier(Duration.ofHours(1));
                    });
        }

        /** The other rank is through. */
        @Test
        @Order(2)
        void oneFailsAtTheEnd() {
            Ranks.runBare(
                    backend,
                    PAIR,
                    communicator -> {
                        communicator.barrier(Ranks.TIMEOUT);
                        assertThat(communicator.rank()).as("the rank").isZero();
                    });
        }

        @Test
        @Order(3)
        void bothPass() {
            Ranks.runBare(
                    backend,
                    PAIR,
                    communicator -> {
                        byte[] own = {(byte) communicator.rank()};
                        assertThat(communicator.allGather(own, Ranks.TIMEOUT))
                                .containsExactly(new byte[] {0}, new byte[] {1});
                    });
        }
    }

    @Test
    void aFailureEndsNoLaterCase(@TempDir Path folder) throws Exception {
        List<ProcessSuites.Outcome> outcomes =
                new ProcessSuites(folder, List.of())
                        .outcomes(2, 1, BufferTestBackends.HOST, List.of(Cases.class));
        assertThat(outcomes).hasSize(2);
        for (ProcessSuites.Outcome outcome : outcomes) {
            assertThat(outcome.output()).contains("[the rank]");
            assertThat(outcome.count("failed")).as(outcome.output()).isEqualTo(2);
            assertThat(outcome.count("successful")).as(outcome.output()).isEqualTo(1);
        }
    }
}
