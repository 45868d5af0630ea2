package io.deepep.djl.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.InProcessGroup;
import io.deepep.djl.Moe;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which rank does what when, and who learns of failures. */
class CallOrderTest {
    private static final int NUM_RANKS = 4;
    private static final int STEPS = 3;
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    /**
     * A rank that computes while another one's kernel waits for it may be held back for good:
     * between the first rank's call and the last one's nobody computes. Ranks come to their calls
     * one after another.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void nobodyComputesWhileACallWaits(boolean lowLatency) throws InterruptedException {
        List<String> log = Collections.synchronizedList(new ArrayList<>());
        Moe.run(
                NUM_RANKS,
                (communicator, buffer, manager) -> {
                    try (StagedExchange exchange =
                            lowLatency
                                    ? new LowLatencyExchange(buffer, Transport.BF16)
                                    : new NormalExchange(buffer, Transport.BF16)) {
                        Runnable meeting = () -> communicator.barrier(TIMEOUT);
                        exchange.order =
                                new Logged(manager.getDevice(), meeting, communicator.rank(), log);
                        NDArray x = Moe.tokens(manager, communicator.rank(), 4);
                        NDArray weights = manager.ones(new Shape(4, 1));
                        NDArray idx = manager.zeros(new Shape(4, 1), DataType.INT64).add(3);
                        for (int step = 0; step < STEPS; step++) {
                            NDArray y =
                                    exchange.exchange(
                                            x,
                                            idx,
                                            weights,
                                            Moe.EXPERTS,
                                            LocalExperts.each((_, rows) -> slowly(log, rows)),
                                            () -> log.add("compute"));
                            assertThat(Moe.maxError(x, y)).isLessThan(0.01f * Moe.largest(x));
                        }
                    }
                });
        for (int i = 0; i < log.size(); i++) {
            if (log.get(i).equals("call")) {
                assertThat(log.subList(i, i + NUM_RANKS)).containsOnly("call");
                i += NUM_RANKS - 1;
            }
        }
        assertThat(log.stream().filter("call"::equals)).hasSize(2 * STEPS * NUM_RANKS);
    }

    /** Every token goes to rank 1, which takes its time. */
    private static NDArray slowly(List<String> log, NDArray rows) {
        pause(30);
        log.add("compute");
        return rows;
    }

    private static void pause(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Notes calls, as late as it can before they are made. */
    private static final class Logged extends CallOrder {
        private final int rank;
        private final List<String> log;

        Logged(Device device, Runnable meeting, int rank, List<String> log) {
            super(device, meeting);
            this.rank = rank;
            this.log = log;
        }

        @Override
        CallOptions options() {
            pause(10 * rank);
            log.add("call");
            return super.options();
        }
    }

    /** Also with a GPU each, as first products of cuBLAS wait for the kernels of other GPUs. */
    @Test
    void threadsMeetOnGpus() throws InterruptedException {
        Moe.run(
                2,
                (communicator, buffer, _) -> {
                    Device own = Device.gpu(communicator.rank());
                    assertThat(CallOrder.meeting(buffer, own)).isNotSameAs(CallOrder.ALONE);
                    Device host = Device.cpu();
                    assertThat(CallOrder.meeting(buffer, host)).isSameAs(CallOrder.ALONE);
                });
    }

    /** Otherwise a rank's later meeting would be taken for the one that it owes. */
    @Test
    void refusedCallsKeepTheMeetings() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        Runnable meeting = () -> communicator.barrier(TIMEOUT);
                        CallOrder order = new CallOrder(Device.cpu(), meeting);
                        if (communicator.rank() == 0) {
                            assertThatThrownBy(() -> order.dispatch(_ -> refuse()))
                                    .hasMessage("refused");
                        } else {
                            assertThat(order.<Integer>dispatch(_ -> 1)).isEqualTo(1);
                        }
                        assertThat(communicator.allGather(new byte[1], TIMEOUT)).hasSize(2);
                    });
        }
    }

    private static int refuse() {
        throw new IllegalStateException("refused");
    }

    /** A rank whose call is refused while another one is gone throws why it was refused. */
    @Test
    void refusedCallsOfARankThatIsAloneAreTold() {
        Runnable meeting =
                new Runnable() {
                    private int met;

                    @Override
                    public void run() {
                        if (met++ > 0) {
                            throw new IllegalStateException("alone");
                        }
                    }
                };
        CallOrder order = new CallOrder(Device.cpu(), meeting);
        assertThatThrownBy(() -> order.dispatch(_ -> refuse()))
                .hasMessage("refused")
                .satisfies(e -> assertThat(e.getSuppressed()[0]).hasMessage("alone"));
    }

    /** An asynchronous combine's failure is thrown by the next exchange, or in the end. */
    @Test
    void failureOfACombineIsTold() {
        CallOrder order = new Failing(Device.cpu());
        order.combine(_ -> done());
        assertThatThrownBy(() -> order.combine(_ -> done())).hasMessage("a peer did not come");
        order.combine(_ -> done()); // told once
        assertThatThrownBy(order::end).hasMessage("a peer did not come");
        order.end();
    }

    /** The last combine's failure is told to who asks, and shown, and does not blame the next. */
    @Test
    void failureOfTheLastCombineIsToldToWhoAsks() throws InterruptedException {
        Moe.run(
                1,
                (_, buffer, manager) -> {
                    try (StagedExchange exchange = new NormalExchange(buffer, Transport.BF16)) {
                        exchange.awaitLast(); // nothing yet
                        exchange.order = new Failing(manager.getDevice());
                        Moe.exchangeTokens(exchange, manager, 4);
                        assertThat(ExchangeCountersTest.read(0, "Healthy")).isEqualTo(true);
                        assertThatThrownBy(exchange::awaitLast).hasMessage("a peer did not come");
                        assertThat(ExchangeCountersTest.read(0, "Healthy")).isEqualTo(false);
                        exchange.order = new CallOrder(manager.getDevice(), CallOrder.ALONE);
                        Moe.exchangeTokens(exchange, manager, 4);
                        exchange.awaitLast();
                        assertThat(ExchangeCountersTest.read(0, "Healthy")).isEqualTo(true);
                    }
                });
    }

    /** Every combine fails, once it is over, and this rank runs ahead as on a GPU. */
    private static final class Failing extends CallOrder {
        private final Event failure = failing();

        Failing(Device device) {
            super(device, ALONE);
        }

        @Override
        void combine(Function<CallOptions, Event> call) {
            super.combine(
                    options -> {
                        call.apply(options).synchronize();
                        return failure;
                    });
        }

        @Override
        void await(Event event) {
            if (!event.equals(failure)) {
                super.await(event);
            }
        }
    }

    private static Event done() {
        return event(() -> {});
    }

    private static Event failing() {
        return event(
                () -> {
                    throw new IllegalStateException("a peer did not come");
                });
    }

    private static Event event(Runnable synchronize) {
        return new Event() {
            @Override
            public boolean isDone() {
                return true;
            }

            @Override
            public void synchronize() {
                synchronize.run();
            }
        };
    }
}
