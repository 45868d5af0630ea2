package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.cuda.driver.FakeLibraries;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.Meeting;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Buffers that share NVSHMEM, over fake_nvshmem.c: two ranks, each in a process of its own. */
class NvshmemWorldTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final int NUM_RANKS = 2;

    @TempDir private static Path folder;
    private static Path compiled;

    private final List<Rank> ranks = List.of(new Rank(), new Rank());

    /** What would be a process. */
    private static final class Rank {
        private final NvshmemWorld.Slot slot = new NvshmemWorld.Slot();
        private final FakeNvshmem fake = new FakeNvshmem(compiled);
        private Duration timeout = TIMEOUT;

        NvshmemWorld join(NvshmemOptions options, Communicator communicator) {
            return join(options, communicator, PeMap.World.GLOBAL);
        }

        NvshmemWorld join(NvshmemOptions options, Communicator communicator, PeMap.World world) {
            PeMap map = new PeMap(new EpTopology(communicator.rank(), NUM_RANKS, 1), world);
            Meeting meeting = NvshmemWorld.meeting(communicator, timeout);
            return NvshmemWorld.join(
                    slot,
                    options,
                    map,
                    meeting,
                    () -> fake.start(options, map, communicator, timeout));
        }

        List<String> calls() {
            return fake.calls().stream().map(call -> call.replaceAll(" .*", "")).toList();
        }
    }

    @BeforeAll
    static void compile() {
        compiled = FakeLibraries.compile("fake_nvshmem", folder);
    }

    @AfterEach
    void nothingWouldHaveEndedTheProcess() {
        ranks.forEach(rank -> assertThat(rank.fake.fatal()).isEmpty());
    }

    private interface Body {
        void run(Rank rank, Communicator communicator) throws Exception;
    }

    private void onEveryRank(Body body) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(communicator -> body.run(ranks.get(communicator.rank()), communicator));
        }
    }

    private static NvshmemOptions options(int numQps) {
        return FakeNvshmem.options(NvshmemTransport.IBGDA).withQueues(numQps, 1024, List.of());
    }

    @Test
    void theNextBufferFindsItRunning() throws Exception {
        onEveryRank(
                (rank, communicator) -> {
                    NvshmemWorld first = rank.join(options(4), communicator);
                    assertThat(rank.join(options(4), communicator)).isSameAs(first);
                    assertThat(rank.join(options(2), communicator)).isSameAs(first);
                });
        assertThat(ranks.getFirst().calls())
                .containsExactly(
                        "get_uniqueid",
                        "init",
                        "barrier",
                        "split",
                        "destroy",
                        "barrier",
                        "barrier");
        assertThat(ranks.getLast().calls())
                .containsExactly("init", "barrier", "split", "destroy", "barrier", "barrier");
    }

    /** A queue has failed since: nobody waits for a call that would never end. */
    @Test
    void connectionsThatFailedAreAnErrorOfTheNextBuffer() throws Exception {
        onEveryRank(
                (rank, communicator) -> {
                    rank.timeout = Duration.ofSeconds(4);
                    rank.join(options(1), communicator);
                    communicator.barrier(TIMEOUT);
                    if (communicator.rank() == 1) {
                        rank.fake.set("fake_hang", 1);
                    }
                    assertThatThrownBy(() -> rank.join(options(1), communicator))
                            .isInstanceOf(DeepEpUnavailableException.class)
                            .hasMessageContaining("rank 1: NVSHMEM's connections are broken")
                            .hasMessageContaining("start all processes again");
                    rank.fake.set("fake_hang", 0);
                });
    }

    /** Before a kernel takes the wrong PE for its peer. */
    @Test
    void railsThatNvshmemNumbersOtherwiseAreAnErrorOfAll() throws Exception {
        ranks.getLast().fake.set("fake_team_shift", 1);
        onEveryRank(
                (rank, communicator) ->
                        assertThatThrownBy(() -> rank.join(options(1), communicator))
                                .hasMessageContaining("NVSHMEM numbers rank")
                                .hasMessageContaining("in its rail, but it is rdmaRank"));
    }

    @Test
    void memoryIsFreedWhenAllRanksHaveGivenItBackAndMeetAgain() throws Exception {
        CountDownLatch closed = new CountDownLatch(1);
        onEveryRank(
                (rank, communicator) -> {
                    NvshmemWorld world = rank.join(options(1), communicator);
                    int early = world.allocate(100, 128, communicator, TIMEOUT);
                    int late = world.allocate(200, 128, communicator, TIMEOUT);
                    world.release(early);
                    if (communicator.rank() == 0) {
                        world.release(late);
                        closed.countDown();
                    }
                    closed.await();
                    int third = world.allocate(300, 128, communicator, TIMEOUT);
                    assertThat(world.address(third) % 128).isZero();
                });
        ranks.forEach(
                rank ->
                        assertThat(rank.calls())
                                .endsWith(
                                        "init", "barrier", "split", "destroy", "align", "align",
                                        "free", "align"));
    }

    @Test
    void anotherWorldMustWaitForOpenBuffers() throws Exception {
        onEveryRank(
                (rank, communicator) -> {
                    NvshmemWorld world = rank.join(options(1), communicator);
                    int used = world.allocate(100, 128, communicator, TIMEOUT);
                    assertThatThrownBy(() -> rank.join(options(1), communicator, PeMap.World.RAIL))
                            .isInstanceOf(DeepEpUnavailableException.class)
                            .hasMessageContaining("rank 0: 1 open buffers use NVSHMEM with");
                    world.release(used);
                    assertThat(rank.join(options(1), communicator, PeMap.World.RAIL))
                            .isNotSameAs(world);
                });
        assertThat(ranks.getFirst().calls())
                .containsExactly(
                        "get_uniqueid",
                        "init",
                        "barrier",
                        "split",
                        "destroy",
                        "align",
                        "free",
                        "finalize",
                        "get_uniqueid",
                        "init",
                        "barrier");
    }

    /** Buffers that need more queues come too late: NVSHMEM reads its environment once. */
    @Test
    void moreQueuesComeTooLate() throws Exception {
        onEveryRank(
                (rank, communicator) -> {
                    rank.join(options(1), communicator);
                    assertThatThrownBy(() -> rank.join(options(2), communicator))
                            .hasMessageContaining("NVSHMEM_IBGDA_NUM_RC_PER_PE=2 comes too late");
                });
    }

    @Test
    void ranksFromDifferentWorldsDoNotMix() throws Exception {
        onEveryRank((rank, communicator) -> rank.join(options(1), communicator));
        Rank anew = new Rank();
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        Rank rank = communicator.rank() == 0 ? ranks.getFirst() : anew;
                        assertThatThrownBy(() -> rank.join(options(1), communicator))
                                .hasMessageContaining("by rank: [SAME, NONE]");
                    });
        }
    }

    @Test
    void twoRanksOfOneProcessAreRefused() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator ->
                            assertThatThrownBy(
                                            () -> ranks.getFirst().join(options(1), communicator))
                                    .hasMessageContaining(
                                            "another rank of its process joins NVSHMEM"));
        }
    }

    @Test
    void theProcessEndsWithoutItsPeers() throws Exception {
        onEveryRank((rank, communicator) -> rank.join(options(1), communicator));
        ranks.getFirst().slot.end();
        ranks.getFirst().slot.end();
        assertThat(ranks.getFirst().calls()).endsWith("barrier", "split", "destroy", "global_exit");
        ranks.getLast().fake.device.lost = true;
        ranks.getLast().slot.end();
        assertThat(ranks.getLast().calls()).endsWith("barrier", "split", "destroy");
        assertThatThrownBy(
                        () ->
                                onEveryRank(
                                        (rank, communicator) ->
                                                rank.join(options(1), communicator)))
                .rootCause()
                .hasMessageContaining("NVSHMEM was given up in this process");
    }
}
