package io.deepep.bench.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.Main;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

/** The command on the machine that the test runs on, whatever it has. */
class DoctorCommandTest {
    private record Outcome(int exitCode, String out, String err) {}

    private static Outcome run(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int exitCode = Main.run(arguments, new PrintWriter(out), new PrintWriter(err));
        return new Outcome(exitCode, out.toString(), err.toString());
    }

    @Test
    void everyMachineHasAReport() {
        Outcome outcome = run("doctor");
        assertThat(outcome.exitCode()).isZero();
        assertThat(outcome.err()).isEmpty();
        assertThat(outcome.out())
                .contains("Checks", "GPU", "NVSHMEM")
                .containsPattern("host backend +\\| yes +\\| on the CPU");
    }

    @Test
    void everyMachineHasJson() throws Exception {
        Outcome outcome = run("doctor", "--json", "--no-bandwidth");
        assertThat(outcome.exitCode()).isZero();
        assertThat(new ObjectMapper().readTree(outcome.out()).at("/modes/0/possible").asBoolean())
                .isTrue();
    }

    @Test
    void wrongMappingIsWrongUsage() {
        Outcome outcome = run("doctor", "--nic-mapping", "gpu0");
        assertThat(outcome.exitCode()).isEqualTo(2);
        assertThat(outcome.out()).isEmpty();
        assertThat(outcome.err().strip())
                .isEqualTo(
                        "deepep: --nic-mapping: NIC mapping \"gpu0\": \"gpu0\" has no =; write GPU=HCA[:PORT],"
                                + " as in gpu0=mlx5_0:1");
    }

    /** On any machine: what the report says can run decides. */
    @Test
    void requirementsGiveTheExitCode() {
        boolean cuda =
                run("doctor", "--no-bandwidth").out().matches("(?s).*GPUs of one node +\\| yes.*");
        Outcome outcome = run("doctor", "--no-bandwidth", "--require", "cuda");
        assertThat(outcome.exitCode()).isEqualTo(cuda ? 0 : 1);
        assertThat(outcome.err().contains("deepep: --require cuda: GPUs of one node: missing: "))
                .isEqualTo(!cuda);
        assertThat(run("doctor", "--require", "cuda,tpu").exitCode()).isEqualTo(2);
    }
}
