package io.deepep.djl.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.djl.Moe;
import java.lang.management.ManagementFactory;
import java.util.Set;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.timer.Timer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What JMX shows of an exchange. */
public class ExchangeCountersTest {
    /** An attribute of the only open exchange of a rank. */
    public static Object read(int rank, String attribute) {
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            return server.getAttribute(names(rank).iterator().next(), attribute);
        } catch (JMException failure) {
            throw new AssertionError(failure);
        }
    }

    private static Set<ObjectName> names(int rank) throws JMException {
        return ManagementFactory.getPlatformMBeanServer()
                .queryNames(
                        new ObjectName("io.deepep:type=ExpertExchange,rank=" + rank + ",*"), null);
    }

    /** Six tokens of each rank, all to expert 1, of rank 0, and to expert 7, of rank 1. */
    private static void exchangeSix(
            ExpertExchange exchange, NDManager manager, int rank, LocalExperts experts) {
        exchange.exchange(
                Moe.tokens(manager, rank, 6),
                manager.create(new long[] {1, 7}, new Shape(1, 2)).repeat(0, 6),
                manager.ones(new Shape(6, 2), DataType.FLOAT32),
                Moe.EXPERTS,
                experts,
                () -> {});
    }

    @Test
    void countsTokensAndRowsUntilItIsClosed() throws InterruptedException {
        Moe.run(
                2,
                (communicator, buffer, manager) -> {
                    int rank = communicator.rank();
                    try (ExpertExchange exchange = ExpertExchange.normal(buffer, Transport.BF16)) {
                        exchangeSix(exchange, manager, rank, LocalExperts.each((_, rows) -> rows));
                        assertThat(read(rank, "NumRanks")).isEqualTo(2);
                        assertThat(read(rank, "Device").toString())
                                .startsWith(manager.getDevice().isGpu() ? "cuda" : "host");
                        assertThat(read(rank, "Mode")).isEqualTo("normal");
                        assertThat(read(rank, "Healthy")).isEqualTo(true);
                        assertThat(read(rank, "Exchanges")).isEqualTo(1L);
                        assertThat(read(rank, "TokensSent")).isEqualTo(6L);
                        assertThat(read(rank, "RowsReceived")).isEqualTo(12L);
                        assertThat((long[]) read(rank, "ExpertRows"))
                                .containsExactly(
                                        rank == 0
                                                ? new long[] {0, 12, 0, 0}
                                                : new long[] {0, 0, 0, 12});
                        assertThat((long) read(rank, "Nanos"))
                                .isGreaterThanOrEqualTo((long) read(rank, "ExpertNanos"));
                    }
                    assertThat(names(rank)).isEmpty();
                });
    }

    /** Experts that do not ask for the number of their rows. */
    @Test
    void rowsThatNobodyWaitsForAreCountedInTheEnd() throws InterruptedException {
        Moe.run(
                2,
                (communicator, buffer, manager) -> {
                    int rank = communicator.rank();
                    try (ExpertExchange exchange =
                            ExpertExchange.lowLatency(buffer, Transport.BF16)) {
                        for (int i = 0; i < 3; i++) {
                            exchangeSix(exchange, manager, rank, ExpertRows::x);
                        }
                        assertThat(read(rank, "RowsReceived")).isEqualTo(0L);
                        exchange.awaitLast();
                        assertThat((long[]) read(rank, "ExpertRows"))
                                .containsExactly(
                                        rank == 0
                                                ? new long[] {0, 36, 0, 0}
                                                : new long[] {0, 0, 0, 36});
                        exchange.awaitLast();
                        assertThat(read(rank, "RowsReceived")).isEqualTo(36L);
                    }
                });
    }

    /** Tokens that are refused are not sent. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void tooManyTokensAreNotSent(boolean lowLatency) throws InterruptedException {
        Moe.run(
                1,
                (_, buffer, manager) -> {
                    try (ExpertExchange exchange = Moe.open(buffer, Transport.BF16, lowLatency)) {
                        assertThatThrownBy(
                                        () ->
                                                Moe.exchangeTokens(
                                                        exchange, manager, Moe.MAX_TOKENS + 1))
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("maxTokens=" + Moe.MAX_TOKENS);
                        assertThat(read(0, "TokensSent")).isEqualTo(0L);
                        assertThat(read(0, "Failures")).isEqualTo(1L);
                        Moe.exchangeTokens(exchange, manager, Moe.MAX_TOKENS);
                        assertThat(read(0, "TokensSent")).isEqualTo((long) Moe.MAX_TOKENS);
                        assertThat(read(0, "Exchanges")).isEqualTo(2L);
                    }
                });
    }

    /**
     * Class loaders with this library each count their beans from 1, on the one server there is.
     */
    @Test
    void idsOfOtherClassLoadersAreLeftOut() throws InterruptedException {
        Moe.run(
                1,
                (_, buffer, _) -> {
                    MBeanServer server = ManagementFactory.getPlatformMBeanServer();
                    ObjectName taken;
                    try (ExpertExchange _ = ExpertExchange.normal(buffer, Transport.BF16)) {
                        long id = Long.parseLong(names(0).iterator().next().getKeyProperty("id"));
                        taken =
                                new ObjectName(
                                        "io.deepep:type=ExpertExchange,rank=0,id=" + (id + 1));
                    }
                    server.registerMBean(new Timer(), taken);
                    try (ExpertExchange _ = ExpertExchange.normal(buffer, Transport.BF16)) {
                        assertThat(names(0)).hasSize(2).contains(taken);
                    } finally {
                        server.unregisterMBean(taken);
                    }
                    assertThat(names(0)).isEmpty();
                });
    }
}
