package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import io.deepep.DType;
import io.deepep.Graph;
import io.deepep.djl.SwiGluExperts.Extras;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.Transport;
import io.deepep.djl.gate.ExpertGate;
import io.deepep.djl.script.Operators;
import java.io.DataOutputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** All experts of a rank at once against the layer computed densely in FLOAT32. */
class SwiGluExpertsTest {
    private static final int NUM_RANKS = 4;
    private static final float BF16_ERROR = 0.02f;

    /**
     * On GPUs BF16 takes grouped multiplications, of slots that are packed if all are too many, and
     * batched ones; F32 takes a loop and batched ones.
     */
    @ParameterizedTest
    @CsvSource({
        "BF16, false, 0",
        "BF16, true, 0",
        "BF16, true, 1e9",
        "F32, false, 0",
        "F32, true, 0",
        "F32, true, 1e9"
    })
    void equalTheDenseLayer(DType type, boolean lowLatency, double fewOperations)
            throws InterruptedException {
        Moe.run(
                NUM_RANKS,
                (communicator, buffer, manager) -> {
                    try (ExpertExchange exchange = Moe.open(buffer, Transport.BF16, lowLatency)) {
                        ExpertGate gate = Moe.softmaxGate(manager);
                        ExpertParallelMoE moe = layer(exchange, gate, manager, type, fewOperations);
                        // Few tokens leave experts, and ranks, without any.
                        for (int numTokens : new int[] {16, 1, 0, 7}) {
                            int mine = communicator.rank() == 1 ? 0 : numTokens;
                            NDArray x = Moe.tokens(manager, communicator.rank(), mine);
                            NDArray y = Moe.forward(moe, x);
                            assertThat(y.getShape()).isEqualTo(x.getShape());
                            if (mine > 0) {
                                NDArray expected = Moe.dense(gate, x, manager);
                                assertThat(Moe.maxError(y, expected))
                                        .as("%d tokens", numTokens)
                                        .isLessThan(BF16_ERROR * Moe.largest(expected));
                            }
                        }
                    }
                });
    }

    /** Replays have other numbers of rows, which the host does not learn. */
    @ParameterizedTest
    @ValueSource(doubles = {0, 1e9})
    @EnabledIf("io.deepep.djl.Moe#hasGpu")
    void equalTheDenseLayerInAGraph(double fewOperations) throws InterruptedException {
        Moe.withCapturableExchange(
                NUM_RANKS,
                Transport.BF16,
                (communicator, exchange, manager) -> {
                    ExpertGate gate = Moe.softmaxGate(manager);
                    ExpertParallelMoE moe =
                            layer(exchange, gate, manager, DType.BF16, fewOperations);
                    NDArray x = Moe.tokens(manager, communicator.rank(), 7);
                    NDArray[] y = new NDArray[1];
                    Runnable run = () -> y[0] = Moe.forward(moe, x);
                    run.run();
                    run.run();
                    try (Graph graph = exchange.capture(manager.getDevice(), run)) {
                        for (int i = 1; i <= 5; i++) {
                            communicator.barrier(Duration.ofSeconds(20));
                            NDArray next = Moe.tokens(manager, 10 * i + communicator.rank(), 7);
                            TorchTensors.cast(next, x);
                            graph.replay();
                            exchange.awaitLast();
                            NDArray expected = Moe.dense(gate, x, manager);
                            assertThat(Moe.maxError(y[0], expected))
                                    .isLessThan(BF16_ERROR * Moe.largest(expected));
                        }
                    }
                });
    }

    /** Of three experts with four slots, the second has no rows. */
    @ParameterizedTest
    @EnumSource(names = {"BF16", "F32"})
    void slotsInUseAreTakenAndPutBack(DType type) {
        try (NDManager manager = Moe.manager()) {
            NDArray slots = TorchTensors.empty(manager, type, 3, 4, 2);
            TorchTensors.cast(manager.arange(24f).reshape(3, 4, 2), slots);
            NDArray counts = manager.create(new int[] {2, 0, 1});
            NDArray ends = Operators.endsOf(counts);
            assertThat(ends.toIntArray()).containsExactly(2, 2, 3);
            NDList use = Operators.slotsInUse(counts, ends, 4, 5);
            NDArray used = use.get(0);
            NDArray packed = Operators.rowsOf(slots.reshape(12, 2), used);
            assertThat(packed.toType(DataType.FLOAT32, true).toFloatArray())
                    .containsExactly(0, 1, 2, 3, 16, 17, 16, 17, 16, 17);
            packed = Operators.rowsOf(packed, use.get(1));
            NDArray out = TorchTensors.empty(manager, type, 3, 4, 2);
            TorchTensors.cast(manager.zeros(new Shape(3, 4, 2)), out);
            Operators.setRows(out.reshape(12, 2), used, packed);
            float[] put = out.toType(DataType.FLOAT32, true).toFloatArray();
            assertThat(Arrays.copyOf(put, 5)).containsExactly(0, 1, 2, 3, 0);
            assertThat(Arrays.copyOfRange(put, 14, 20)).containsExactly(0, 0, 16, 17, 0, 0);
        }
    }

    @Test
    void noSlotsInUseAreOneThatIsNot() {
        try (NDManager manager = Moe.manager()) {
            NDArray none = manager.create(new int[3]);
            NDList use = Operators.slotsInUse(none, Operators.endsOf(none), 4, 5);
            assertThat(use.get(0).toLongArray()).containsOnly(use.get(0).getLong(0));
            assertThat(use.get(0).getLong(0)).isBetween(0L, 11L);
            assertThat(use.get(1).toIntArray()).containsOnly(0);
        }
    }

    /** The second of three groups is empty, and a row is behind the last. */
    @Test
    void rowsGetWhatBelongsToTheirGroup() {
        try (NDManager manager = Moe.manager()) {
            NDArray y =
                    Operators.addByGroup(
                            manager.zeros(new Shape(4, 1)),
                            manager.create(new float[] {1, 2, 3}, new Shape(3, 1)),
                            manager.create(new int[] {2, 2, 3}));
            assertThat(Arrays.copyOf(y.toFloatArray(), 3)).containsExactly(1, 1, 3);
        }
    }

    /** On GPUs they are for few slots; here each is compared with its expert alone. */
    @ParameterizedTest
    @CsvSource({"0, false", "7, false", "7, true"})
    void allSlotsAreComputedAtOnce(float limit, boolean biased) {
        try (NDManager manager = Moe.manager()) {
            NDArray gateUp = Moe.random(manager, 1, 1, 3, 8, 6);
            NDArray down = Moe.random(manager, 2, 1, 3, 6, 4);
            NDArray gateUpBias = biased ? Moe.random(manager, 3, 1, 3, 8) : null;
            NDArray downBias = biased ? Moe.random(manager, 4, 1, 3, 6) : null;
            SwiGluExperts experts =
                    new SwiGluExperts(
                            gateUp, down, new Extras(gateUpBias, downBias, limit, 1.702f));
            NDArray slots = Moe.random(manager, 5, 1, 3, 5, 6);
            NDArray out = manager.create(new Shape(3, 5, 6));
            NDArray all = experts.inAllSlots(slots, out);
            assertThat(all).isSameAs(out);
            for (int e = 0; e < 3; e++) {
                assertThat(all.get(e).toFloatArray())
                        .containsExactly(
                                experts.one(e, slots.get(e)).toFloatArray(), within(1e-4f));
            }
        }
    }

    @Test
    void areInNoParameterFile() throws InterruptedException {
        Moe.withExchange(
                1,
                (_, exchange, manager) -> {
                    ExpertParallelMoE moe =
                            layer(exchange, Moe.softmaxGate(manager), manager, DType.F32, 0);
                    DataOutputStream out = new DataOutputStream(OutputStream.nullOutputStream());
                    assertThatThrownBy(() -> moe.saveParameters(out))
                            .isInstanceOf(UnsupportedOperationException.class)
                            .hasMessageContaining("checkpoint");
                    assertThatThrownBy(
                                    () ->
                                            ExpertParallelMoE.builder(exchange, Moe.EXPERTS)
                                                    .gate(Moe.softmaxGate(manager))
                                                    .build())
                            .isInstanceOf(IllegalStateException.class);
                });
    }

    private static ExpertParallelMoE layer(
            ExpertExchange exchange,
            ExpertGate gate,
            NDManager manager,
            DType type,
            double fewOperations) {
        int numLocal = Moe.EXPERTS / exchange.topology().numRanks();
        NDArray gateUp =
                TorchTensors.empty(manager, type, numLocal, 2L * Moe.INTERMEDIATE, Moe.HIDDEN);
        NDArray down = TorchTensors.empty(manager, type, numLocal, Moe.HIDDEN, Moe.INTERMEDIATE);
        for (int e = 0; e < numLocal; e++) {
            Block expert = Moe.expert(manager, exchange.topology().rank() * numLocal + e);
            NDArray[] values =
                    expert.getParameters().values().stream()
                            .map(Parameter::getArray)
                            .toArray(NDArray[]::new);
            TorchTensors.cast(values[0].concat(values[1]), gateUp.get(e));
            TorchTensors.cast(values[2], down.get(e));
        }
        assertThat(down.getShape()).isEqualTo(new Shape(numLocal, Moe.HIDDEN, Moe.INTERMEDIATE));
        return ExpertParallelMoE.builder(exchange, Moe.EXPERTS)
                .gate(gate)
                .localExperts(new SwiGluExperts(gateUp, down, Extras.NONE, fewOperations))
                .build();
    }
}
