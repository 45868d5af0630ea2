package io.deepep.djl.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.djl.Moe;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The memory from which experts' results are sent. */
class NormalExchangeTest {
    /** 18 to 32 rows take the memory of 32, and so do fewer; 34 rows take that of 64. */
    @Test
    void callsSendFromTheSameMemoryUntilItIsTooSmall() throws InterruptedException {
        List<Long> addresses = new ArrayList<>();
        Moe.run(
                1,
                (_, buffer, manager) -> {
                    try (ExpertExchange exchange =
                            ExpertExchange.normal(noting(addresses, buffer), Transport.BF16)) {
                        for (int numTokens : new int[] {9, 16, 0, 3, 10, 17, 32, 9}) {
                            NDArray x = Moe.tokens(manager, 0, numTokens);
                            NDArray idx = manager.ones(new Shape(numTokens, 2), DataType.INT64);
                            idx.muli(manager.create(new long[] {3, 5}));
                            NDArray weights = manager.full(new Shape(numTokens, 2), 0.5f);
                            NDArray y =
                                    exchange.exchange(
                                            x, idx, weights, Moe.EXPERTS, ExpertRows::x, () -> {});
                            if (numTokens > 0) {
                                assertThat(Moe.maxError(x, y)).isLessThan(0.01f * Moe.largest(x));
                            }
                        }
                    }
                });
        assertThat(addresses.subList(0, 5)).containsOnly(addresses.getFirst());
        assertThat(addresses.subList(5, 8)).containsOnly(addresses.getLast());
    }

    /** Before anything is sent: tokens that the routing leaves out would come back as zeros. */
    @Test
    void routingOfOtherTokensIsRefused() throws InterruptedException {
        Moe.withExchange(
                1,
                (_, exchange, manager) -> {
                    NDArray x = Moe.tokens(manager, 0, 5);
                    for (Shape[] shapes :
                            new Shape[][] {
                                {new Shape(3, 2), new Shape(3, 2)},
                                {new Shape(6, 2), new Shape(6, 2)},
                                {new Shape(5, 2), new Shape(5, 1)},
                                {new Shape(5), new Shape(5)}
                            }) {
                        assertThatThrownBy(
                                        () ->
                                                exchange.exchange(
                                                        x,
                                                        manager.ones(shapes[0], DataType.INT64),
                                                        manager.ones(shapes[1]),
                                                        Moe.EXPERTS,
                                                        ExpertRows::x,
                                                        () -> {}))
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("topkIdx is " + shapes[0])
                                .hasMessageContaining("topkWeights " + shapes[1])
                                .hasMessageContaining("T=5");
                    }
                });
    }

    /** FLOAT16, the type of the tokens, would round this weight down, and BF16 then again. */
    @Test
    void resultsAreRoundedOnce() throws InterruptedException {
        float weight = 0.5f + 0x1p-9f + 0x1p-14f;
        Moe.withExchange(
                1,
                (_, exchange, manager) -> {
                    NDArray y =
                            exchange.exchange(
                                    manager.ones(new Shape(1, Moe.HIDDEN), DataType.FLOAT16),
                                    manager.ones(new Shape(1, 1), DataType.INT64),
                                    manager.full(new Shape(1, 1), weight),
                                    Moe.EXPERTS,
                                    LocalExperts.each((_, rows) -> rows),
                                    () -> {});
                    assertThat(y.toType(DataType.FLOAT32, true).toFloatArray())
                            .containsOnly(0.5f + 0x1p-8f);
                });
    }

    /** The buffer, but it notes what is combined. */
    private static Buffer noting(List<Long> addresses, Buffer buffer) {
        return (Buffer)
                Proxy.newProxyInstance(
                        Buffer.class.getClassLoader(),
                        new Class<?>[] {Buffer.class},
                        (_, method, arguments) -> {
                            if (method.getName().equals("combine")) {
                                addresses.add(((CombinePlan) arguments[0]).x().address());
                            }
                            return method.invoke(buffer, arguments);
                        });
    }
}
