package io.deepep.bench.doctor;

import static io.deepep.bench.CommandLines.runLine;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.Outcome;
import org.junit.jupiter.api.Test;

/** The command on the machine that the test runs on, whatever it has. */
class DoctorCommandTest {
    @Test
    void everyMachineHasAReport() {
        assertThat(runLine("doctor").requirePassed().out())
                .contains("Checks", "GPU", "NVSHMEM")
                .containsPattern("host backend +\\| yes +\\| on the CPU");
    }

    @Test
    void everyMachineHasJson() throws Exception {
        Outcome outcome = runLine("doctor --json --no-bandwidth");
        assertThat(outcome.exitCode()).isZero();
        assertThat(new ObjectMapper().readTree(outcome.out()).at("/modes/0/possible").asBoolean())
                .isTrue();
    }

    @Test
    void wrongMappingIsWrongUsage() {
        runLine("doctor --nic-mapping gpu0")
                .requireComplaint(
                        "deepep: --nic-mapping: NIC mapping \"gpu0\": \"gpu0\" has no =; write GPU=HCA[:PORT],"
                                + " as in gpu0=mlx5_0:1");
    }

    /** On any machine: what the report says can run decides. */
    @Test
    void requirementsGiveTheExitCode() {
        boolean cuda =
                runLine("doctor --no-bandwidth").out().matches("(?s).*GPUs of one node +\\| yes.*");
        Outcome outcome = runLine("doctor --no-bandwidth --require cuda");
        assertThat(outcome.exitCode()).isEqualTo(cuda ? 0 : 1);
        assertThat(outcome.err().contains("deepep: --require cuda: GPUs of one node: missing: "))
                .isEqualTo(!cuda);
        assertThat(runLine("doctor --require cuda,tpu").exitCode()).isEqualTo(2);
    }
}
