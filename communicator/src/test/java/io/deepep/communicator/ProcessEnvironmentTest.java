package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What launchers tell their processes, as maps. */
class ProcessEnvironmentTest {
    private static final Pattern WORD = Pattern.compile("(\\S+?)=(\\S*)");
    private static final String SECRET = "DEEPEP_SECRET=fedcba9876543210";
    private static final String MEETING = "MASTER_ADDR=gpu01 MASTER_PORT=29500 " + SECRET;
    private static final String TORCHRUN =
            "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 " + MEETING;
    private static final String MPIRUN =
            "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1"
                    + " OMPI_COMM_WORLD_LOCAL_SIZE=4 "
                    + MEETING;
    private static final String HYDRA =
            "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4 " + MEETING;
    private static final String SRUN =
            "SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 SLURM_NTASKS=8 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=4(x2)"
                    + " SLURM_STEP_NODELIST=gpu[01-02] MASTER_PORT=29500 "
                    + SECRET;

    /** A map from words such as {@code RANK=1}; later words win. */
    private static Map<String, String> variables(String... texts) {
        return WORD.matcher(String.join(" ", texts))
                .results()
                .collect(
                        Collectors.toMap(
                                word -> word.group(1),
                                word -> word.group(2),
                                (former, later) -> later,
                                HashMap::new));
    }

    private static Map<String, String> without(String name, String... texts) {
        Map<String, String> variables = variables(texts);
        assertThat(variables.remove(name)).isNotNull();
        return variables;
    }

    private static void assertRefused(Map<String, String> variables, String... words) {
        assertThatThrownBy(() -> ProcessEnvironment.from(variables))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll(words);
    }

    @Test
    void everyLauncherSaysTheSame() {
        ProcessEnvironment expected =
                new ProcessEnvironment(
                        5, 8, 1, 4, "gpu01", 29500, "fedcba9876543210", Duration.ofSeconds(15));
        for (String launcher : new String[] {TORCHRUN, MPIRUN, HYDRA, SRUN}) {
            assertThat(ProcessEnvironment.from(variables(launcher)))
                    .as(launcher)
                    .isEqualTo(expected);
        }
    }

    @Test
    void aNewGroupMeetsSomewhereElse() {
        ProcessEnvironment first = ProcessEnvironment.from(variables(TORCHRUN));
        ProcessEnvironment next = first.withMasterPort(29501).withMasterAddress("gpu02");
        assertThat(next.masterPort()).isEqualTo(29501);
        assertThat(next.masterAddress()).isEqualTo("gpu02");
        assertThat(next.withMasterPort(29500).withMasterAddress("gpu01")).isEqualTo(first);
    }

    /** Where MpiDefault=pmi2, or --mpi=pmi2, srun gives its tasks these beside its own. */
    @Test
    void srunMayTellPmiToo() {
        ProcessEnvironment task = ProcessEnvironment.from(variables(SRUN, "PMI_RANK=5 PMI_SIZE=8"));
        assertThat(task.rank()).isEqualTo(5);
        assertThat(task.masterAddress()).isEqualTo("gpu01");
        // srun started one task on each host, which started this process.
        assertThat(
                        ProcessEnvironment.from(
                                        variables(
                                                TORCHRUN,
                                                "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 PMI_RANK=1 PMI_SIZE=2"))
                                .rank())
                .isEqualTo(5);
    }

    @Test
    void inAJobOfSlurmTheInnerLauncherCounts() {
        String outer =
                "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 SLURM_STEP_NODELIST=other1";
        for (String launcher : new String[] {TORCHRUN, MPIRUN, HYDRA}) {
            ProcessEnvironment read = ProcessEnvironment.from(variables(outer, launcher));
            assertThat(read.rank()).as(launcher).isEqualTo(5);
            assertThat(read.masterAddress()).isEqualTo("gpu01");
        }
        assertRefused(
                without("SLURM_STEP_NUM_TASKS", SRUN),
                "none of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_STEP_NUM_TASKS is set");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "gpu7|gpu7",
                "gpu[07-09,12],login|gpu07",
                "rack1-gpu[3]|rack1-gpu3",
                "a,b[1-2]|a",
                "rack[1-2]gpu[07-09,12],login|rack1gpu07",
                "gpu[1,3]-ib|gpu1-ib",
            })
    void srunsFirstHostIsTheMeetingPlace(String list, String first) {
        Map<String, String> variables = variables(SRUN);
        variables.put("SLURM_STEP_NODELIST", list);
        assertThat(ProcessEnvironment.from(variables).masterAddress()).isEqualTo(first);
        variables.put("MASTER_ADDR", "chosen");
        assertThat(ProcessEnvironment.from(variables).masterAddress()).isEqualTo("chosen");
    }

    @Test
    void launchersTellOfOthers() {
        for (String launcher : new String[] {TORCHRUN, MPIRUN, HYDRA, SRUN}) {
            assertThat(ProcessEnvironment.isAmongOthers(variables(launcher))).isTrue();
        }
        assertThat(ProcessEnvironment.isAmongOthers(without("WORLD_SIZE", TORCHRUN))).isTrue();
        assertThat(ProcessEnvironment.isAmongOthers(variables(MPIRUN, "RANK=0 WORLD_SIZE=1")))
                .isTrue();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "RANK=0 WORLD_SIZE=1",
                "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1",
                "SLURM_NTASKS=8", // salloc
                "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=8 SLURM_TASKS_PER_NODE=4(x2)", // sbatch
                // srun --pty bash
                "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NODELIST=gpu01",
            })
    void aProcessAlone(String texts) {
        assertThat(ProcessEnvironment.isAmongOthers(variables(texts))).isFalse();
    }

    @Test
    void namesWhatIsMissing() {
        assertRefused(
                Map.of(), "this process has no rank", "deepep launch, torchrun, mpirun or srun");
        assertRefused(without("WORLD_SIZE", TORCHRUN), "RANK is set, but WORLD_SIZE is missing");
        assertRefused(without("RANK", TORCHRUN), "WORLD_SIZE is set, but RANK is missing");
        assertRefused(
                without("OMPI_COMM_WORLD_SIZE", MPIRUN),
                "OMPI_COMM_WORLD_RANK is set, but OMPI_COMM_WORLD_SIZE is missing");
        assertRefused(without("LOCAL_RANK", TORCHRUN), "LOCAL_RANK is missing", "chooses the GPU");
        assertRefused(without("MASTER_PORT", TORCHRUN), "MASTER_PORT is missing");
        assertRefused(
                without("MASTER_ADDR", MPIRUN), "MASTER_ADDR is missing", "Open MPI does not set");
        assertRefused(
                without("MASTER_ADDR", TORCHRUN), "MASTER_ADDR is missing, although RANK is set");
        assertRefused(
                without("SLURM_STEP_NODELIST", SRUN),
                "MASTER_ADDR is missing",
                "srun does not set");
    }

    @Test
    void namesWhatIsWrong() {
        assertRefused(variables(TORCHRUN, "RANK=five"), "RANK=five is not a number");
        assertRefused(variables(TORCHRUN, "RANK=4294967296"), "RANK=4294967296 is out of range");
        assertRefused(variables(TORCHRUN, "RANK=8"), "rank=8 (RANK) is not between 0 and 7");
        assertRefused(variables(TORCHRUN, "WORLD_SIZE=0"), "size=0 (WORLD_SIZE)");
        assertRefused(
                variables(TORCHRUN, "LOCAL_RANK=4"),
                "localRank=4 (LOCAL_RANK) is not between 0 and 3, localSize=4");
        assertRefused(variables(TORCHRUN, "RANK=-1"), "rank=-1 (RANK)");
        assertRefused(variables(TORCHRUN, "LOCAL_RANK=-1"), "localRank=-1 (LOCAL_RANK)");
        assertRefused(variables(TORCHRUN, "LOCAL_WORLD_SIZE=0"), "localSize=0 (LOCAL_WORLD_SIZE)");
        assertRefused(variables(TORCHRUN, "WORLD_SIZE=65536"), "size=65536 (WORLD_SIZE)");
        assertRefused(variables(TORCHRUN, "MASTER_PORT=0"), "masterPort=0 (MASTER_PORT)");
        assertRefused(variables(TORCHRUN, "LOCAL_WORLD_SIZE=9"), "localSize=9 (LOCAL_WORLD_SIZE)");
        assertRefused(variables(TORCHRUN, "MASTER_PORT=65536"), "masterPort=65536 (MASTER_PORT)");
        assertRefused(
                variables(TORCHRUN, "DEEPEP_SECRET=short"), "has 5 characters, but at least 16");
        assertRefused(variables(TORCHRUN, "DEEPEP_FAILURE_SECONDS=0"), "DEEPEP_FAILURE_SECONDS");
        assertRefused(
                variables(SRUN, "SLURM_STEP_TASKS_PER_NODE=4,3"),
                "SLURM_STEP_TASKS_PER_NODE=4,3 is not one number for all hosts");
    }

    @Test
    void launchersThatContradictEachOther() {
        assertRefused(
                variables(MPIRUN, TORCHRUN, "RANK=4"), "RANK=4 contradicts OMPI_COMM_WORLD_RANK=5");
        assertRefused(
                variables(HYDRA, TORCHRUN, "PMI_SIZE=4"), "WORLD_SIZE=8 contradicts PMI_SIZE=4");
        assertThat(ProcessEnvironment.from(variables(MPIRUN, TORCHRUN)).rank()).isEqualTo(5);
        // srun started a shell.
        assertThat(ProcessEnvironment.from(variables(MPIRUN, "PMI_RANK=0 PMI_SIZE=1")).rank())
                .isEqualTo(5);
        // mpirun started one torchrun on each host, torchrun this process.
        ProcessEnvironment inner =
                ProcessEnvironment.from(
                        variables(
                                TORCHRUN,
                                "TORCHELASTIC_RUN_ID=1 OMPI_COMM_WORLD_RANK=1"
                                        + " OMPI_COMM_WORLD_SIZE=2"));
        assertThat(inner.rank()).isEqualTo(5);
    }

    @Test
    void portsThatOthersDoNotListenAt() {
        assertThat(
                        ProcessEnvironment.from(
                                        variables(TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True"))
                                .masterPort())
                .isEqualTo(29501);
        assertThat(
                        ProcessEnvironment.from(
                                        variables(
                                                TORCHRUN,
                                                "TORCHELASTIC_USE_AGENT_STORE=True"
                                                        + " DEEPEP_MASTER_PORT=777"))
                                .masterPort())
                .isEqualTo(777);
    }

    @Test
    void withoutLocalVariablesAllRanksAreOnOneHost() {
        Map<String, String> variables =
                variables("RANK=1 WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=5", SECRET);
        ProcessEnvironment read = ProcessEnvironment.from(variables);
        assertThat(read.localRank()).isEqualTo(1);
        assertThat(read.localSize()).isEqualTo(3);
    }

    @Test
    void secretFromAFile(@TempDir Path folder) throws IOException {
        String secret = "0123456789abcdef0123456789abcdef";
        Path file = SecretFileTest.write(folder.resolve("secret"), secret + "\n", "rw-------");
        Map<String, String> variables =
                without("DEEPEP_SECRET", TORCHRUN, "DEEPEP_SECRET_FILE=" + file);
        assertThat(ProcessEnvironment.from(variables).secret()).isEqualTo(secret);
        assertThat(ProcessEnvironment.from(variables).toString()).doesNotContain(secret);
        variables.put("DEEPEP_SECRET", secret);
        assertRefused(variables, "DEEPEP_SECRET and DEEPEP_SECRET_FILE are both set");
        assertRefused(
                without("DEEPEP_SECRET", TORCHRUN, "DEEPEP_SECRET_FILE=" + folder + "/absent"),
                "absent cannot be read");
    }

    @Test
    void thereIsAlwaysASecret() {
        assertRefused(
                variables(TORCHRUN, "DEEPEP_SECRET= MASTER_ADDR=127.0.0.1"),
                "secret (DEEPEP_SECRET) is empty, but at least 16 characters are needed",
                "set DEEPEP_SECRET_FILE");
        assertRefused(
                without("DEEPEP_SECRET", TORCHRUN, "MASTER_ADDR=192.0.2.1"),
                "MASTER_ADDR=192.0.2.1 is not a loopback address and neither DEEPEP_SECRET_FILE nor"
                        + " DEEPEP_SECRET is set",
                "openssl rand -hex 32");
        Map<String, String> local = without("DEEPEP_SECRET", TORCHRUN, "MASTER_ADDR=localhost");
        assertThat(ProcessEnvironment.from(local).secret())
                .hasSize(64)
                .isEqualTo(ProcessEnvironment.from(local).secret());
    }

    /** Only the ranks of one host meet at one, so they need no secret and no local rank. */
    @ParameterizedTest
    @ValueSource(strings = {"LocalHost", "127.1.2.3", "::1", "[::1]", "0:0:0:0:0:0:0:1"})
    void loopbackAddresses(String address) {
        Map<String, String> variables =
                variables("RANK=1 WORLD_SIZE=3 MASTER_PORT=5 MASTER_ADDR=" + address);
        assertThat(ProcessEnvironment.from(variables).localRank()).isEqualTo(1);
        variables.put("MASTER_ADDR", "127.example.org");
        assertRefused(variables, "LOCAL_RANK is missing");
    }

    @Test
    void otherSettings() {
        ProcessEnvironment read =
                ProcessEnvironment.from(
                        variables(
                                TORCHRUN,
                                "DEEPEP_FAILURE_SECONDS=3 DEEPEP_SECRET=0123456789abcdef"));
        assertThat(read.failureTimeout()).isEqualTo(Duration.ofSeconds(3));
        assertThat(read.secret()).isEqualTo("0123456789abcdef");
        assertThat(read.toString()).isEqualTo("rank 5 of 8 (local 1) at gpu01:29500");
    }

    @ParameterizedTest
    @CsvSource({"0, 1, 1, 1", "65534, 65535, 65535, 1"})
    void theLargestAndTheSmallestAreAllowed(int rank, int size, int port, int seconds) {
        ProcessEnvironment read =
                ProcessEnvironment.from(
                        variables(
                                TORCHRUN,
                                "RANK=%1$s WORLD_SIZE=%2$s LOCAL_RANK=%1$s LOCAL_WORLD_SIZE=%2$s"
                                        .formatted(rank, size),
                                "MASTER_PORT=%s DEEPEP_FAILURE_SECONDS=%s"
                                        .formatted(port, seconds)));
        assertThat(read.toString())
                .isEqualTo("rank %1$s of %2$s (local %1$s) at gpu01:%3$s", rank, size, port);
        assertThat(read.localSize()).isEqualTo(size);
        assertThat(read.failureTimeout()).isEqualTo(Duration.ofSeconds(seconds));
    }
}
