package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.cuda.driver.FakeLibraries;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A single PE over fake_nvshmem.c, which notes every call that would have ended the process. */
class NvshmemTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final NvshmemOptions OPTIONS = FakeNvshmem.options(NvshmemTransport.NONE);

    @TempDir private static Path folder;
    private static Path compiled;

    private final FakeNvshmem fake = new FakeNvshmem(compiled);

    @BeforeAll
    static void compile() {
        compiled = FakeLibraries.compile("fake_nvshmem", folder);
    }

    @AfterEach
    void nothingWouldHaveEndedTheProcess() {
        assertThat(fake.fatal()).isEmpty();
    }

    private Nvshmem open() {
        return open(OPTIONS, TIMEOUT);
    }

    private Nvshmem open(NvshmemOptions options, Duration timeout) {
        PeMap map = new PeMap(new EpTopology(0, 1, 1), PeMap.World.GLOBAL);
        try (InProcessGroup group = InProcessGroup.of(1)) {
            return fake.start(options, map, group.communicator(0), timeout);
        }
    }

    @Test
    void startHandsOverWhatTheHeaderSays() {
        try (Nvshmem nvshmem = open()) {
            assertThat(nvshmem.peMap().pe()).isZero();
            assertThat(fake.device.currentOn.getName()).isEqualTo("nvshmem");
        }
        assertThat(fake.calls())
                .containsExactly(
                        "get_uniqueid version=10080 teams=7 nvls=1",
                        "init flags=8 versions=10090,10080,10018 pe=0 of 1 id intact",
                        "finalize");
    }

    @Test
    void memoryIsFreedOnce() {
        AtomicInteger unloaded = new AtomicInteger();
        try (Nvshmem nvshmem = open()) {
            long memory = nvshmem.allocate(1000, 128);
            assertThat(memory % 128).isZero();
            nvshmem.register(() -> 0xabc, unloaded::incrementAndGet);
            nvshmem.meet();
            nvshmem.quietOnStream(0x78);
            nvshmem.free(memory);
            nvshmem.free(memory);
            assertThat(unloaded).hasValue(0);
        }
        assertThat(unloaded).hasValue(1);
        assertThat(fake.calls().subList(2, fake.calls().size()))
                .containsExactly(
                        "align 128 1000",
                        "module abc",
                        "barrier",
                        "split of 0: 0 1 1 config=(nil) mask=0",
                        "destroy",
                        "quiet on stream 78",
                        "free",
                        "module end",
                        "finalize");
    }

    @Test
    void whatIsLeftIsReleasedAtTheEnd() {
        AtomicInteger unloaded = new AtomicInteger();
        Nvshmem nvshmem = open();
        long memory = nvshmem.allocate(8, 16);
        nvshmem.register(() -> 0xabc, unloaded::incrementAndGet);
        nvshmem.close();
        assertThat(fake.calls().subList(4, 7)).containsExactly("module end", "free", "finalize");
        assertThat(unloaded).hasValue(1);
        nvshmem.free(memory);
        nvshmem.close();
        assertThat(fake.calls()).hasSize(7);
    }

    @Test
    void closedNvshmemRefusesCalls() {
        Nvshmem nvshmem = open();
        long memory = nvshmem.allocate(8, 16);
        nvshmem.close();
        List<Runnable> calls =
                List.of(
                        nvshmem::barrier,
                        () -> nvshmem.allocate(8, 16),
                        nvshmem::meet,
                        () -> nvshmem.peerAddress(memory, 0),
                        () -> nvshmem.register(() -> 1, () -> {}));
        assertThat(calls)
                .allSatisfy(
                        call ->
                                assertThatThrownBy(call::run)
                                        .isInstanceOf(IllegalStateException.class)
                                        .hasMessage("NVSHMEM is closed"));
    }

    @Test
    void itCanBeStartedAgainWithTheSameOptionsOnly() {
        open().close();
        open().close();
        NvshmemOptions other = FakeNvshmem.options(NvshmemTransport.NONE, "lo");
        assertThatThrownBy(() -> open(other, TIMEOUT))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining(
                        "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=lo comes too late: NVSHMEM was started in this process"
                                + " with NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME unset");
        open().close();
    }

    @Test
    void oneAtATime() {
        try (Nvshmem first = open()) {
            assertThatThrownBy(this::open)
                    .hasMessageContaining("NVSHMEM is already open in this process");
            first.barrier();
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -1})
    void sizesThatAllocateNothingAreRefused(long numBytes) {
        try (Nvshmem nvshmem = open()) {
            assertThatThrownBy(() -> nvshmem.allocate(numBytes, 128))
                    .hasMessage("numBytes=" + numBytes + " is not positive");
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 8, 24, -16})
    void wrongAlignmentsAreRefused(long alignment) {
        try (Nvshmem nvshmem = open()) {
            assertThatThrownBy(() -> nvshmem.allocate(8, alignment))
                    .hasMessage("alignment=" + alignment + " is not a power of two of at least 16");
        }
    }

    @Test
    void outOfMemoryNamesTheSize() {
        fake.set("fake_out_of_memory", 1);
        try (Nvshmem nvshmem = open()) {
            assertThatThrownBy(() -> nvshmem.allocate(1 << 30, 128))
                    .isInstanceOf(NativeCallException.class)
                    .hasMessage(
                            "nvshmem_align failed on cuda:0 (fake), 1073741824 bytes: NVSHMEMX_ERROR_OUT_OF_MEMORY (2)");
            fake.set("fake_out_of_memory", 0);
            nvshmem.allocate(8, 16);
        }
    }

    @Test
    void sharedGpusHaveNoTeams() {
        fake.set("fake_status", NvshmemLibrary.STATUS_LIMITED_SHARING);
        try (Nvshmem nvshmem = open()) {
            nvshmem.meet();
        }
        assertThat(fake.calls()).noneMatch(call -> call.startsWith("split"));
    }

    @Test
    void failedSplitIsReported() {
        fake.set("fake_split_status", 7);
        try (Nvshmem nvshmem = open()) {
            assertThatThrownBy(nvshmem::meet)
                    .hasMessageContaining("nvshmem_team_split_strided failed")
                    .hasMessageContaining("NVSHMEMX_ERROR_INTERNAL (7)");
        }
    }

    @Test
    void moduleOfAnotherVersionIsReported() {
        fake.set("fake_module_status", 7);
        try (Nvshmem nvshmem = open()) {
            assertThatThrownBy(() -> nvshmem.register(() -> 1, () -> {}))
                    .isInstanceOf(NativeCallException.class)
                    .hasMessageContaining("nvshmemx_cumodule_init failed");
        }
    }

    @Test
    void moduleUnloadedBehindItsBackEndsNvshmemNotTheProcess() {
        boolean[] unloaded = {false};
        Nvshmem nvshmem = open();
        nvshmem.register(
                () -> {
                    if (unloaded[0]) {
                        throw new IllegalStateException("module k is closed");
                    }
                    return 1;
                },
                () -> {});
        unloaded[0] = true;
        nvshmem.close();
        assertThatThrownBy(nvshmem::barrier).hasMessage("NVSHMEM is closed");
        assertThat(fake.calls()).doesNotContain("finalize");
        assertThatThrownBy(this::open)
                .hasMessageContaining("module k is closed")
                .hasMessageContaining("restart the process");
    }

    @Test
    void lostContextIsNotToldToNvshmem() {
        Nvshmem nvshmem = open();
        nvshmem.allocate(8, 16);
        fake.device.lost = true;
        nvshmem.close();
        assertThat(fake.calls()).doesNotContain("free", "finalize");
        assertThatThrownBy(this::open).hasMessageContaining("CUDA_ERROR_ILLEGAL_ADDRESS");
    }

    @Test
    void abandonedNvshmemIsNotCalledAgain() {
        Nvshmem nvshmem = open();
        long memory = nvshmem.allocate(8, 16);
        nvshmem.abandon();
        nvshmem.free(memory);
        nvshmem.close();
        assertThat(fake.calls()).doesNotContain("free", "finalize");
        assertThatThrownBy(this::open).hasMessageContaining("it was abandoned");
    }

    @Test
    void callThatDoesNotReturnIsGivenUp() {
        Nvshmem nvshmem = open(OPTIONS, Duration.ofMillis(300));
        fake.set("fake_hang", 1);
        try {
            assertThatThrownBy(nvshmem::barrier)
                    .isInstanceOf(DeepEpUnavailableException.class)
                    .hasMessageStartingWith("nvshmem_barrier_all did not return within 0.3 s");
            assertThatThrownBy(nvshmem::barrier).hasMessage("NVSHMEM is closed");
            nvshmem.close();
        } finally {
            fake.set("fake_hang", 0);
        }
    }
}
