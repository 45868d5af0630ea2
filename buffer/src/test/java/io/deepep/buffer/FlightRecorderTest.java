package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.Programs;
import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** What a flight recording shows of calls, and that calls cost no memory while there is none. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Isolated("a recording shows the calls of all threads")
class FlightRecorderTest {
    private static final int NUM_RANKS = 2;
    private static final int NUM_TOKENS = 6;
    private static final int HIDDEN = 128;
    private static final int NUM_CALLS = 1000;
    private static final int MOST_ROUNDS = 100;
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    /** What one rank does with its buffer; the plans have been used before. */
    private interface Calls {
        void make(Buffer buffer, DispatchPlan dispatch, CombinePlan combine) throws Exception;
    }

    /** All of rank r's tokens go to the expert of rank r + 1. */
    private static void onEveryRank(Calls calls) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        NormalLimits limits = NormalLimits.of(NUM_TOKENS, HIDDEN, 1, NUM_RANKS);
                        try (Buffer buffer = Buffer.builder(communicator).normal(limits).open();
                                Arena arena = Arena.ofShared()) {
                            Tensor topk = Tensor.allocate(arena, DType.I64, NUM_TOKENS, 1);
                            for (int token = 0; token < NUM_TOKENS; token++) {
                                topk.setLong((communicator.rank() + 1) % NUM_RANKS, token, 0);
                            }
                            DispatchPlan dispatch =
                                    DispatchPlan.builder(
                                                    Tensor.allocate(
                                                            arena, DType.BF16, NUM_TOKENS, HIDDEN))
                                            .topk(topk, null, NUM_RANKS)
                                            .build();
                            DispatchResult received = buffer.dispatch(dispatch);
                            CombinePlan combine =
                                    CombinePlan.builder(received.recvX(), received.handle())
                                            .build();
                            buffer.combine(combine);
                            calls.make(buffer, dispatch, combine);
                        }
                    });
        }
    }

    /** The events of one dispatch and one combine on each rank. */
    private static List<RecordedEvent> record(String... settings) throws InterruptedException {
        ConcurrentLinkedQueue<RecordedEvent> seen = new ConcurrentLinkedQueue<>();
        try (RecordingStream stream = new RecordingStream()) {
            stream.setReuse(false);
            for (String event : settings) {
                stream.enable(event);
            }
            stream.onEvent(seen::add);
            onEveryRank(
                    (buffer, dispatch, combine) -> {
                        buffer.options().communicator().barrier(TIMEOUT);
                        if (buffer.topology().rank() == 0) {
                            stream.startAsync();
                        }
                        buffer.options().communicator().barrier(TIMEOUT);
                        buffer.dispatch(dispatch);
                        buffer.combine(combine);
                    });
            stream.stop();
        }
        return List.copyOf(seen);
    }

    @Test
    void operations() throws InterruptedException {
        List<RecordedEvent> events = record("io.deepep.Operation");
        assertThat(events).hasSize(2 * NUM_RANKS);
        for (RecordedEvent event : events) {
            assertThat(event.getString("mode")).isEqualTo("normal");
            assertThat(event.getString("device")).isEqualTo("host");
            assertThat(event.getString("format")).isEqualTo("bf16");
            assertThat(event.getLong("tokens")).isEqualTo(NUM_TOKENS);
            assertThat(event.getLong("receivedRows")).isEqualTo(NUM_TOKENS);
            assertThat(event.getLong("nvlinkBytes")).isEqualTo(NUM_TOKENS * 2L * HIDDEN);
            assertThat(event.getLong("rdmaBytes")).isZero();
            assertThat(event.getBoolean("finished")).isTrue();
            assertThat(event.getString("error")).isNull();
            assertThat(event.getDuration("beginTime")).isPositive();
            assertThat(event.getDuration())
                    .isGreaterThanOrEqualTo(event.getDuration("completeTime"));
        }
        assertThat(events)
                .extracting(event -> event.getInt("rank") + event.getString("operation"))
                .containsExactlyInAnyOrder("0dispatch", "0combine", "1dispatch", "1combine");
    }

    @Test
    void peersAndExperts() throws InterruptedException {
        List<RecordedEvent> events = record("io.deepep.Peer", "io.deepep.ExpertLoad");
        assertThat(events)
                .filteredOn(event -> event.getEventType().getName().equals("io.deepep.Peer"))
                .hasSize(2 * NUM_RANKS * NUM_RANKS)
                .allSatisfy(
                        event -> {
                            boolean own = event.getInt("rank") == event.getInt("peer");
                            long bytes = own ? 0 : NUM_TOKENS * 2L * HIDDEN;
                            assertThat(event.getLong("sentBytes")).isEqualTo(bytes);
                            assertThat(event.getLong("receivedBytes")).isEqualTo(bytes);
                            assertThat(event.getDuration("waitTime"))
                                    .isGreaterThanOrEqualTo(Duration.ZERO);
                        });
        assertThat(events)
                .filteredOn(event -> event.getEventType().getName().equals("io.deepep.ExpertLoad"))
                .hasSize(NUM_RANKS)
                .allSatisfy(
                        event -> {
                            assertThat(event.getInt("expert")).isEqualTo(event.getInt("rank"));
                            assertThat(event.getInt("tokens")).isEqualTo(NUM_TOKENS);
                        });
    }

    /**
     * In a JVM of its own: where other code has used vectors of other kinds, compiled code may keep
     * them as objects.
     */
    @Test
    void callsAllocateNothingWithoutARecording() throws Exception {
        ProcessBuilder program =
                Programs.java(GarbageProgram.class, List.of("--add-modules=jdk.incubator.vector"));
        String said = Programs.run(program).requireSuccess();
        assertThat(said.lines())
                .as(said)
                .filteredOn(GarbageProgram.CLEAN::equals)
                .hasSize(NUM_RANKS);
    }

    /**
     * Calls after a recording has come and gone. Until the compiler has been everywhere, vectors
     * are objects; so ranks go on until they have all made a round without garbage.
     */
    static final class GarbageProgram {
        static final String CLEAN = "a round without garbage";

        public static void main(String[] args) throws Exception {
            record("io.deepep.Operation");
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            onEveryRank(
                    (buffer, dispatch, combine) -> {
                        Communicator communicator = buffer.options().communicator();
                        List<Long> seen = new ArrayList<>();
                        boolean done = false;
                        while (!done && seen.size() < MOST_ROUNDS) {
                            long before = threads.getCurrentThreadAllocatedBytes();
                            for (int i = 0; i < NUM_CALLS; i++) {
                                buffer.dispatch(dispatch);
                                buffer.combine(combine);
                            }
                            seen.add(threads.getCurrentThreadAllocatedBytes() - before);
                            byte[] clean = {(byte) (Collections.min(seen) < NUM_CALLS ? 1 : 0)};
                            done =
                                    communicator.allGather(clean, TIMEOUT).stream()
                                            .allMatch(rank -> rank[0] == 1);
                        }
                        System.out.println(
                                Collections.min(seen) < NUM_CALLS
                                        ? CLEAN
                                        : "bytes of %d calls in rounds: %s"
                                                .formatted(2 * NUM_CALLS, seen));
                    });
        }
    }
}
