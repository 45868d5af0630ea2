package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.cuda.driver.FakeLibraries;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.RankMismatchException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Four ranks on two nodes, each as if in a process of its own, over fake_nvshmem.c. */
class NvshmemStartTest {
    private static final int NUM_RANKS = 4;
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final NvshmemOptions OPTIONS = FakeNvshmem.options(NvshmemTransport.IBGDA);

    @TempDir private static Path folder;
    private static Path compiled;

    private final List<FakeNvshmem> fakes = new ArrayList<>();
    private final ConcurrentHashMap<Integer, RuntimeException> failures = new ConcurrentHashMap<>();

    @BeforeAll
    static void compile() {
        compiled = FakeLibraries.compile("fake_nvshmem", folder);
    }

    NvshmemStartTest() {
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            fakes.add(new FakeNvshmem(compiled));
        }
    }

    @AfterEach
    void nothingWouldHaveEndedAProcess() {
        assertThat(fakes).allSatisfy(fake -> assertThat(fake.fatal()).isEmpty());
    }

    /** Starts and ends NVSHMEM on all ranks; what ranks throw is kept. */
    private void start(PeMap.World world, IntFunction<NvshmemOptions> options)
            throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        PeMap map = new PeMap(new EpTopology(rank, NUM_RANKS, 2), world);
                        try (Nvshmem nvshmem =
                                fakes.get(rank)
                                        .start(options.apply(rank), map, communicator, TIMEOUT)) {
                            nvshmem.meet();
                        } catch (RuntimeException e) {
                            failures.put(rank, e);
                        }
                    });
        }
    }

    private void assertAllFailed(Class<? extends RuntimeException> type, String... parts) {
        assertThat(failures).hasSize(NUM_RANKS);
        assertThat(failures.values())
                .allSatisfy(
                        failure ->
                                assertThat(failure)
                                        .isInstanceOf(type)
                                        .hasMessageContainingAll(parts));
    }

    private void assertUnavailable(String... parts) throws InterruptedException {
        start(PeMap.World.GLOBAL, rank -> OPTIONS);
        assertAllFailed(DeepEpUnavailableException.class, parts);
    }

    @Test
    void worldOfAllRanksHasOneIdAndTeamsOfRails() throws Exception {
        start(PeMap.World.GLOBAL, rank -> OPTIONS);
        assertThat(failures).isEmpty();
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            List<String> calls = fakes.get(rank).calls();
            assertThat(calls.stream().filter(call -> call.startsWith("get_uniqueid")))
                    .hasSize(rank == 0 ? 1 : 0);
            assertThat(calls)
                    .contains(
                            "init flags=8 versions=10090,10080,10018 pe="
                                    + rank
                                    + " of 4 id intact",
                            "split of 0: " + rank % 2 + " 2 2 config=(nil) mask=0",
                            "destroy",
                            "finalize");
        }
    }

    @Test
    void eachRailIsAWorldWithAnIdOfItsOwn() throws Exception {
        start(PeMap.World.RAIL, rank -> OPTIONS);
        assertThat(failures).isEmpty();
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            List<String> calls = fakes.get(rank).calls();
            assertThat(calls.stream().filter(call -> call.startsWith("get_uniqueid")))
                    .hasSize(rank < 2 ? 1 : 0);
            assertThat(calls)
                    .contains(
                            "init flags=8 versions=10090,10080,10018 pe="
                                    + rank / 2
                                    + " of 2 id intact");
        }
    }

    @Test
    void silentFailureOfOneIsLearntByAll() throws Exception {
        fakes.get(2).set("fake_status", 1);
        assertUnavailable(
                "NVSHMEM cannot start: rank 2: NVSHMEM did not start on cuda:0 (fake): init_status=1 is below 2",
                "NVSHMEM_DEBUG=WARN");
        assertThat(fakes.get(0).calls()).doesNotContain("finalize");
        failures.clear();
        start(PeMap.World.GLOBAL, rank -> OPTIONS);
        assertThat(failures.get(1)).hasMessageContaining("cannot be used again in this process");
    }

    @Test
    void failureIsLearntByAll() throws Exception {
        fakes.get(1).set("fake_init_status_code", 7);
        assertUnavailable(
                "rank 1: ", "nvshmemx_hostlib_init_attr failed", "NVSHMEMX_ERROR_INTERNAL (7)");
    }

    /** NVLink would do, so NVSHMEM itself reports success. */
    @Test
    void transportThatDidNotStartIsAnErrorOfAll() throws Exception {
        fakes.get(2).set("fake_transport_fails", 1);
        assertUnavailable(
                "NVSHMEM cannot start: rank 2: transport IBGDA was asked for, but NVSHMEM could not start it on cuda:0",
                "use transport NONE");
        assertThat(fakes.get(0).calls()).doesNotContain("finalize");
    }

    @Test
    void usersVariableThatContradictsIsRefusedByName() throws Exception {
        Map<String, String> contradiction = Map.of("NVSHMEM_IBGDA_ENABLE_MULTI_PORT", "true");
        fakes.forEach(fake -> fake.user = new NvshmemUserSettings(contradiction));
        assertUnavailable(
                "NVSHMEM_IBGDA_ENABLE_MULTI_PORT=true is set in the environment, but this buffer needs"
                        + " NVSHMEM_IBGDA_ENABLE_MULTI_PORT=0",
                "unset it");
        assertThat(fakes).allMatch(f -> f.calls().stream().noneMatch(c -> c.startsWith("init")));
    }

    @Test
    void noIdMeansNoStart() throws Exception {
        fakes.get(0).set("fake_uniqueid_status", 7);
        assertUnavailable(
                "rank 0: nvshmemx_get_uniqueid: NVSHMEMX_ERROR_INTERNAL (7)",
                "bootstrapInterface=eth0");
        assertThat(fakes).allMatch(f -> f.calls().stream().noneMatch(c -> c.startsWith("init")));
    }

    @Test
    void missingPluginsAreNamedByRank() throws Exception {
        Path plugin = Path.of("nvshmem_transport_ibgda.so.3");
        Files.delete(fakes.get(1).installation().libraryFolder().resolve(plugin));
        Files.writeString(
                fakes.get(3).installation().libraryFolder().resolve(plugin), "no library");
        assertUnavailable(
                "rank 1: there is no ",
                "; rank 3: ",
                "nvshmem_transport_ibgda.so.3 cannot be loaded");
    }

    @Test
    void olderLibraryIsRefused() throws Exception {
        fakes.get(3).setMinorVersion(3);
        assertUnavailable(
                "rank 3: ",
                "is NVSHMEM 3.3.5, which does not support device code of 3.4.5",
                NvshmemInstallation.CURE);
    }

    @Test
    void differentVersionsAreRefused() throws Exception {
        fakes.get(2).setMinorVersion(5);
        start(PeMap.World.GLOBAL, rank -> OPTIONS);
        assertAllFailed(
                RankMismatchException.class,
                "ranks disagree on version: rank 0 has 3.4.5, rank 2 has 3.5.5");
    }

    @Test
    void differentOptionsAreRefused() throws Exception {
        start(
                PeMap.World.GLOBAL,
                rank ->
                        FakeNvshmem.options(NvshmemTransport.IBRC)
                                .withQueues(rank == 1 ? 8 : 4, 1024, List.of()));
        assertAllFailed(
                RankMismatchException.class,
                "ranks disagree on numQpsPerPe: rank 0 has 4, rank 1 has 8");
    }

    /** Only some ranks have the variable at all. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "0 | rank 0 has 1, rank 1 has nothing",
                "2 | rank 0 has nothing, rank 2 has 1"
            })
    void variableThatOneRankLacksIsNamed(int owner, String who) throws Exception {
        Map<String, String> own = Map.of("NVSHMEM_IB_ADAPTIVE_ROUTING", "1");
        fakes.get(owner).user = new NvshmemUserSettings(own);
        start(PeMap.World.GLOBAL, rank -> OPTIONS);
        assertAllFailed(
                RankMismatchException.class,
                "ranks disagree on NVSHMEM_IB_ADAPTIVE_ROUTING: " + who);
    }

    @Test
    void moreRdmaDevicesThanNvshmemHasRoomForAreRefused() throws Exception {
        addHcas();
        assertUnavailable(
                "this host has 49 RDMA devices, but NVSHMEM supports at most 48", "sriov_numvfs");
    }

    @Test
    void rdmaDevicesDoNotMatterWithoutRdma() throws Exception {
        addHcas();
        start(PeMap.World.GLOBAL, rank -> FakeNvshmem.options(NvshmemTransport.NONE));
        assertThat(failures).isEmpty();
    }

    private void addHcas() throws IOException {
        for (FakeNvshmem fake : fakes) {
            fake.addHcas(49);
        }
    }

    @Test
    void libraryThatIsNoneIsRefused(@TempDir Path home) throws Exception {
        Path file = Files.writeString(home.resolve(NvshmemInstallation.LIBRARY), "no library");
        NvshmemInstallation broken = NvshmemInstallation.in(home, "test");
        assertThat(broken.library()).isEqualTo(file);
        assertThatThrownBy(() -> NvshmemLibrary.load(broken))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("cannot be loaded")
                .hasMessageContaining("pip install");
    }
}
