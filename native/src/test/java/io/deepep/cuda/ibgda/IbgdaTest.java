package io.deepep.cuda.ibgda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Host side and device code of IBGDA over the card in software, on a GPU or an emulated one. */
class IbgdaTest extends CardSuite {
    private static final Duration SHORT = Duration.ofMillis(300);
    private static final int WARP = 32;

    private final Arena arena = Arena.ofShared();
    private final List<MemorySegment> commands = new ArrayList<>();

    @AfterEach
    void close() {
        arena.close();
    }

    private static IbgdaOptions options(Duration timeout) {
        return options(IbgdaOptions.Doorbells.AUTO, true, timeout, LONG);
    }

    /** A call of the policy, by rank 0. */
    private Command command(int kind, int node) {
        return new Command(kind, node);
    }

    private final class Command {
        private final Params params = NicCheckStructs.COMMAND.allocate(arena);

        Command(int kind, int node) {
            params.setInt("kind", kind).setInt("node", node);
            CardRanks.cells(params, "cells", 0, CardRanks.SLOTS_STRIDE);
            CardRanks.cells(params, "flags", CardRanks.FLAGS, CardRanks.SMALL_STRIDE);
            commands.add(params.memory().segment());
        }

        Command range(long offset, long stride, long numBytes, int numLanes) {
            params.set("offset", offset)
                    .set("stride", stride)
                    .set("num_bytes", numBytes)
                    .set("num_lanes", numLanes);
            return this;
        }

        Command flag(long offset, long value) {
            params.set("flag_offset", offset).set("value", value);
            return this;
        }
    }

    /** Runs the commands given since the last time, as rank 0. */
    private void runCommands() {
        KernelStruct struct = NicCheckStructs.COMMAND;
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        try (PinnedMemory list =
                        PinnedMemory.allocate(context, struct.numBytes() * commands.size());
                CudaStream stream = CudaStream.create(context)) {
            for (int i = 0; i < commands.size(); i++) {
                list.segment().asSlice(struct.numBytes() * i).copyFrom(commands.get(i));
            }
            Params params = NicCheckStructs.SCRIPT.allocate(arena);
            ranks.fillNetwork(params, 0);
            params.set("commands", list.deviceAddress()).setInt("num_commands", commands.size());
            CudaFunction script = module.function("deepep_nic_script");
            script.launch(new LaunchConfig(arena, 1, WARP), params.memory(), stream);
            stream.synchronize();
            commands.clear();
        }
    }

    /** Runs them to the end of all that they send. */
    private void runQuiet() {
        command(NicCheckStructs.QUIET, 0);
        runCommands();
    }

    private long flag(int rank, long offset) {
        return ranks.memory(rank).get(JAVA_LONG, CardRanks.FLAGS + offset);
    }

    /** By each way to ring, with queues in either memory. */
    @ParameterizedTest
    @CsvSource({"AUTO, true", "GPU, false", "THREAD, true", "THREAD, false"})
    void movesData(IbgdaOptions.Doorbells doorbells, boolean inGpu) {
        SoftwareCard.requireReachOfGpu(doorbells == IbgdaOptions.Doorbells.GPU);
        open(2, 1, options(doorbells, inGpu, LONG, LONG));
        MemorySegment outbox =
                ranks.memory(0).asSlice(CardRanks.NETWORK_BYTES + CardRanks.SLOTS_STRIDE, 8192);
        for (int i = 0; i < 1024; i++) {
            outbox.setAtIndex(JAVA_LONG, i, 0x0102030405060708L * i);
        }
        command(NicCheckStructs.PUT, 1).range(4096, 1000, 777, 3);
        command(NicCheckStructs.PUT_SIGNAL, 1).range(3, 1000, 1000, 2).flag(8, 1L << 40 | 77);
        command(NicCheckStructs.SIGNAL, 1).flag(24, 0x1122334455667788L);
        runQuiet();
        MemorySegment arrived = ranks.memory(1).asSlice(0, 8192);
        assertThat(arrived.asSlice(3, 2000).mismatch(outbox.asSlice(3, 2000))).isEqualTo(-1);
        assertThat(arrived.asSlice(0, 3).toArray(JAVA_BYTE)).containsOnly(0);
        assertThat(arrived.asSlice(2003, 2000).toArray(JAVA_BYTE)).containsOnly(0);
        for (int lane = 0; lane < 3; lane++) {
            long at = 4096 + 1000L * lane;
            assertThat(arrived.asSlice(at, 777).mismatch(outbox.asSlice(at, 777))).isEqualTo(-1);
            assertThat(arrived.asSlice(at + 777, 223).toArray(JAVA_BYTE)).containsOnly(0);
        }
        assertThat(flag(1, 8)).isEqualTo(1L << 40 | 77);
        assertThat(flag(1, 16)).isEqualTo(1L << 40 | 78);
        assertThat(flag(1, 24)).isEqualTo(0x1122334455667788L);
        requireNoFailure();
    }

    /** Data before flags, room in queues, every queue pair, while writes overtake each other. */
    @ParameterizedTest
    @CsvSource({"2, 1, 0", "2, 2, 200", "3, 4, 50"})
    void exchanges(int numRanks, int queuesPerPeer, int delayMicros) {
        card.faults("delay " + delayMicros);
        open(numRanks, queuesPerPeer, options(LONG));
        exchange(60);
        requireNoFailure();
    }

    @Test
    void anErrorNamesPeerAndSyndromeAndIsMendedTogether() {
        open(3, 1, options(LONG));
        command(NicCheckStructs.SIGNAL, 2).flag(0, 1);
        runQuiet();
        card.faults("fail 0 retry-exceeded");
        command(NicCheckStructs.SIGNAL, 2).flag(8, 3);
        command(NicCheckStructs.QUIET, 0);
        command(NicCheckStructs.SIGNAL, 2).flag(16, 4);
        command(NicCheckStructs.SIGNAL, 1).flag(8, 5);
        runQuiet();
        assertThat(ranks.failure(0))
                .get()
                .isInstanceOf(NativeCallException.class)
                .asString()
                .contains("to rank 2: TRANSPORT_RETRY_EXCEEDED, vendor syndrome 0x0, at entry 2");
        assertThat(flag(2, 0)).isEqualTo(1);
        assertThat(flag(2, 8)).as("failed").isZero();
        assertThat(flag(2, 16)).as("not sent").isZero();
        assertThat(flag(1, 8)).as("another queue pair").isEqualTo(5);
        ranks.onEach(rank -> ranks.mend(rank));
        requireNoFailure();
        command(NicCheckStructs.SIGNAL, 2).flag(16, 6);
        runQuiet();
        assertThat(flag(2, 16)).isEqualTo(6);
        clearMemory();
        exchange(20);
        requireNoFailure();
    }

    /** A new rank takes the place of a dead one; the others go on also if it fails on its way. */
    @Test
    void aNewRankIsAdmitted() {
        open(3, 1, options(LONG));
        exchange(20);
        ranks.ibgda(2).close();
        int nowhere = 7;
        ranks.onEach(
                rank ->
                        assertThatThrownBy(() -> ranks.replace(rank, 2, nowhere, options(LONG)))
                                .isInstanceOf(DeepEpUnavailableException.class)
                                .hasMessageContaining("rank 2: Index"));
        clearMemory();
        command(NicCheckStructs.SIGNAL, 1).flag(8, 5);
        runQuiet();
        assertThat(flag(1, 8)).isEqualTo(5);
        ranks.onEach(rank -> ranks.replace(rank, 2, 2, options(LONG)));
        clearMemory();
        exchange(20);
        requireNoFailure();
    }

    @Test
    void aPeerThatCannotBeConnectedLeavesTheOthersConnected() {
        open(3, 1, options(LONG));
        exchange(20);
        ranks.ibgda(1).close();
        ranks.onEach(
                rank ->
                        assertThatThrownBy(() -> ranks.replaceByStranger(rank, 1))
                                .isInstanceOf(DeepEpUnavailableException.class)
                                .hasMessageContaining("rank 0: one rank's NIC is RoCE"));
        command(NicCheckStructs.SIGNAL, 1).flag(8, 99);
        command(NicCheckStructs.SIGNAL, 2).flag(8, 99);
        runQuiet();
        assertThat(flag(2, 8)).isEqualTo(99);
        assertThat(ranks.failure(0)).get().asString().contains("rank 1: it could not be connected");
        assertThat(ranks.ibgda(0).quiet(LONG)).isFalse();
        ranks.onEach(rank -> ranks.replace(rank, 1, 1, options(LONG)));
        clearMemory();
        exchange(20);
        requireNoFailure();
    }

    /** Each ends, names peer, syndrome and entry, and is mended. */
    @ParameterizedTest
    @CsvSource({
        "fail 1 retry-exceeded, TRANSPORT_RETRY_EXCEEDED",
        "fail 1 receiver-not-ready, RECEIVER_NOT_READY_RETRY_EXCEEDED",
        "fail 1 remote-access, REMOTE_ACCESS_ERROR",
        "fail 1 remote-operation, REMOTE_OPERATION_ERROR",
        "fail 1 remote-request, REMOTE_INVALID_REQUEST",
        "fail 1 local-protection, LOCAL_PROTECTION_ERROR",
        "fail 1 local-operation, LOCAL_QP_OPERATION_ERROR",
        "fail 1 local-length, LOCAL_LENGTH_ERROR",
        "wrong-key 1, REMOTE_ACCESS_ERROR",
    })
    void everyErrorOfTheCardIsReportedAndMended(String fault, String syndrome) {
        open(2, 1, options(LONG));
        card.faults(fault);
        command(NicCheckStructs.SIGNAL, 1).flag(0, 1);
        command(NicCheckStructs.QUIET, 0);
        command(NicCheckStructs.SIGNAL, 1).flag(8, 2);
        runQuiet();
        assertThat(ranks.failure(0))
                .get()
                .asString()
                .contains("to rank 1: " + syndrome + ", vendor syndrome 0x0, at entry 2 (");
        assertThat(ranks.failure(1)).as("it has sent nothing").isEmpty();
        assertThat(flag(1, 0)).isEqualTo(1);
        assertThat(flag(1, 8)).isZero();
        requireMended();
    }

    private void requireMended() {
        card.faults("");
        ranks.onEach(rank -> ranks.mend(rank));
        requireNoFailure();
        command(NicCheckStructs.SIGNAL, 1).flag(16, 3);
        runQuiet();
        assertThat(flag(1, 16)).isEqualTo(3);
        requireNoFailure();
    }

    /** A port that comes back before the card gives up costs time and nothing else. */
    @Test
    void aPortThatIsDownForAMoment() {
        open(2, 1, options(LONG));
        card.faults("port-down 0 100");
        command(NicCheckStructs.SIGNAL, 1).flag(0, 1);
        runQuiet();
        assertThat(flag(1, 0)).isEqualTo(1);
        requireNoFailure();
    }

    /** The first doorbell after mending has the same value as the last before it. */
    @ParameterizedTest
    @EnumSource(
            value = IbgdaOptions.Doorbells.class,
            names = {"GPU", "THREAD"})
    void aPortThatStaysDownFailsItsQueues(IbgdaOptions.Doorbells doorbells) {
        SoftwareCard.requireReachOfGpu(doorbells == IbgdaOptions.Doorbells.GPU);
        open(2, 1, options(doorbells, true, LONG, LONG));
        card.faults("port down");
        command(NicCheckStructs.SIGNAL, 1).flag(0, 1);
        runQuiet();
        assertThat(ranks.failure(0))
                .get()
                .asString()
                .contains("to rank 1: TRANSPORT_RETRY_EXCEEDED");
        requireMended();
    }

    /** Nothing is sent after it, and nobody waits for it. */
    @Test
    void anErrorThatNoKernelSaw() {
        open(2, 1, options(LONG));
        card.faults("fail 0 remote-operation");
        command(NicCheckStructs.SIGNAL, 1).flag(0, 1);
        runCommands();
        assertThat(ranks.ibgda(0).quiet(LONG)).isFalse();
        assertThat(ranks.failure(0)).get().asString().contains("REMOTE_OPERATION_ERROR");
    }

    /** Ranks that have sent nothing are there at once, and the one that has comes later. */
    @Test
    void mendingWaitsForTheCardOfAnyRank() {
        open(2, 1, options(IbgdaOptions.Doorbells.AUTO, true, LONG, SHORT));
        card.faults("stall 0 1000");
        command(NicCheckStructs.SIGNAL, 1).flag(0, 1);
        runCommands();
        ranks.onEach(rank -> ranks.mend(rank));
        assertThat(flag(1, 0)).isEqualTo(1);
        requireNoFailure();
    }

    @Test
    void aRangeBeyondTheMemoryIsAnError() {
        open(2, 1, options(LONG));
        command(NicCheckStructs.PUT, 1).range(1 << 24, 0, 8, 1);
        runQuiet();
        assertThat(ranks.failure(0)).get().asString().contains("to rank 1: LOCAL_PROTECTION_ERROR");
    }

    @Test
    void aFullQueueWaitsForRoom() {
        open(2, 1, options(LONG));
        card.faults("stall 20 200");
        for (int i = 1; i <= 400; i++) {
            command(NicCheckStructs.SIGNAL, 1).flag(0, i);
        }
        runQuiet();
        requireNoFailure();
        assertThat(flag(1, 0)).isEqualTo(400);
    }

    @ParameterizedTest
    @CsvSource({"1, entry 1 did not complete", "200, the queue stayed full"})
    void whatDoesNotCompleteIsAnError(int numSignals, String message) {
        open(2, 1, options(SHORT));
        card.faults("stall 0 3000");
        for (int i = 0; i < numSignals; i++) {
            command(NicCheckStructs.SIGNAL, 1).flag(0, 1);
        }
        runQuiet();
        assertThat(ranks.failure(0)).get().asString().contains(message);
    }

    /** Whichever call fails: all ranks learn it, and nothing stays behind. */
    @Test
    void aStartThatFailsHalfWayLeavesNothing() {
        int numObjects;
        try (CardRanks whole = new CardRanks(2, 2, options(LONG))) {
            assertThat(whole.numRanks()).isEqualTo(2);
            numObjects = card.numObjects();
        }
        List<String> failures = new ArrayList<>();
        for (int before = 0; before < numObjects; before++) {
            card.faults("refuse " + before);
            try (CardRanks opened = new CardRanks(2, 2, options(LONG))) {
                assertThat(opened.numRanks()).isEqualTo(2);
            } catch (RuntimeException refused) {
                assertThat(refused).hasStackTraceContaining("Cannot allocate memory");
                failures.add(before + " " + refused.getMessage());
            }
            assertThat(card.numObjects()).as("after %d", before).isZero();
        }
        // Which rank's call it is, differs; and there is another way if queues cannot lie in the
        // GPU's memory, or a register is refused.
        assertThat(failures).hasSizeGreaterThanOrEqualTo(numObjects / 2);
    }

    @Test
    void aPortThatIsDownIsRefusedByName() {
        card.faults("port down");
        assertThatThrownBy(() -> open(2, 1, options(LONG)))
                .hasStackTraceContaining("port mlx5_0:1 is not active");
    }
}
