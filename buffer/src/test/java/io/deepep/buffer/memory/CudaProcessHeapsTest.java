package io.deepep.buffer.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.buffer.RankJvm;
import io.deepep.spi.LoopbackPorts;
import io.deepep.testkit.Programs;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * How processes share device memory, on a stand-in for the driver whose device memory is host
 * memory: everything but that the real driver does the same.
 */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Execution(ExecutionMode.CONCURRENT) // its cases are other processes
class CudaProcessHeapsTest {
    private static final Map<String, String> NO_IPC = Map.of("FAKE_CUDA_NO_IPC", "1");
    private static final Map<String, String> NO_FD = Map.of("FAKE_CUDA_NO_FD", "1");

    @TempDir private static Path folder;

    @BeforeAll
    static void buildStandIn() {
        Path library = folder.resolve("libcuda.so.1");
        Programs.compile(CudaProcessHeapsTest.class, "fake_cuda.c", folder, library);
    }

    /** Runs as many processes as there are environments. */
    private List<Programs.Ended> run(
            int ranksPerProcess, boolean inTurn, List<Map<String, String>> each)
            throws IOException, InterruptedException {
        int port = LoopbackPorts.free();
        List<Process> started = new ArrayList<>();
        try {
            for (int process = 0; process < each.size(); process++) {
                ProcessBuilder builder =
                        new RankJvm(process, each.size(), port)
                                .of(
                                        HeapProgram.class,
                                        Integer.toString(ranksPerProcess),
                                        Boolean.toString(inTurn));
                builder.environment().putAll(each.get(process));
                builder.environment().put("LD_LIBRARY_PATH", folder.toString());
                started.add(builder.start());
            }
            List<Programs.Ended> ended = new ArrayList<>();
            for (Process process : started) {
                ended.add(Programs.awaitEnd(process));
            }
            ended.forEach(CudaProcessHeapsTest::assumeDescriptorsCanBeFetched);
            return ended;
        } finally {
            started.forEach(Process::destroyForcibly);
        }
    }

    private static void assumeDescriptorsCanBeFetched(Programs.Ended ended) {
        Assumptions.assumeFalse(
                ended.output().contains("pidfd_getfd"), "this kernel lets no process fetch them");
    }

    private static List<Map<String, String>> all(int processes, Map<String, String> environment) {
        return Collections.nCopies(processes, environment);
    }

    private static void assertClean(List<Programs.Ended> processes) {
        for (Programs.Ended process : processes) {
            assertThat(process.status()).as(process.output()).isZero();
            assertThat(process.output().lines()).containsExactly("live 0");
        }
    }

    @ParameterizedTest
    @CsvSource({"3, 1, false", "3, 1, true", "2, 2, false", "2, 2, true"})
    void byDescriptor(int processes, int ranksPerProcess, boolean inTurn) throws Exception {
        assertClean(run(ranksPerProcess, inTurn, all(processes, NO_IPC)));
    }

    /**
     * The stand-in ends the process if memory is freed that another process has open. With four
     * threads on two devices, two of them want the same memory in the same context.
     */
    @ParameterizedTest
    @CsvSource({"3, 1", "2, 2", "2, 4"})
    void byCudaIpcWhereNoDeviceHasDescriptors(int processes, int ranksPerProcess) throws Exception {
        assertClean(run(ranksPerProcess, false, all(processes, NO_FD)));
    }

    /** What one process cannot do, none does. */
    @Test
    void byCudaIpcWhereOneProcessHasNoDescriptors() throws Exception {
        assertClean(run(1, false, List.of(Map.of(), NO_FD, Map.of())));
    }

    @Test
    void aDescriptorOfOtherMemoryIsNoticed() throws Exception {
        assertClean(run(1, false, List.of(Map.of(), Map.of("FAKE_CUDA_WRONG_FD", "1"))));
    }

    @Test
    void memoryThatOthersKeepOpenIsLeftToTheEndOfTheProcess() throws Exception {
        List<Programs.Ended> processes = run(1, true, all(2, NO_FD));
        for (Programs.Ended process : processes) {
            assertThat(process.status()).as(process.output()).isZero();
        }
        assertThat(processes.getFirst().output()).contains("live 1");
        assertThat(processes.getLast().output()).contains("live 0");
    }

    /** A rank without memory has nobody's open: the others do not keep theirs because of it. */
    @Test
    void whereOneHasNoMemoryTheOthersFreeTheirs() throws Exception {
        Map<String, String> none = new HashMap<>(NO_FD);
        none.put("FAKE_CUDA_NO_MEMORY", "1");
        for (Programs.Ended process : run(1, false, List.of(NO_FD, none, NO_FD))) {
            assertThat(process.output())
                    .containsPattern("rank 1: cuda:1 has \\d+ bytes of memory left, not \\d+")
                    .contains("lower the limits of the buffer")
                    .contains("live 0");
        }
    }

    @Test
    void whereNeitherGoesAllAreToldWhy() throws Exception {
        Map<String, String> neither = new HashMap<>(NO_FD);
        neither.putAll(NO_IPC);
        for (Programs.Ended process : run(1, false, List.of(Map.of(), neither))) {
            assertThat(process.output())
                    .contains(
                            "refused the processes cannot share device memory by descriptors: rank 1: ")
                    .contains("cannot export memory as POSIX_FD")
                    .contains("the processes cannot share device memory by CUDA IPC: rank 1: ")
                    .contains("cuIpcGetMemHandle")
                    .contains("run the ranks of a node on one host")
                    .contains("live 0");
        }
    }
}
