package io.deepep.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.training.ParameterStore;
import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.djl.SwiGluExperts.Extras;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.ExpertRows;
import io.deepep.djl.exchange.LocalExperts;
import io.deepep.djl.exchange.Transport;
import io.deepep.djl.gate.ExpertGate;
import io.deepep.djl.gate.SoftmaxGate;
import io.deepep.djl.gate.TopkRule;
import java.time.Duration;
import java.util.Arrays;

/**
 * Times a layer over all GPUs, a rank on each, with random weights: the whole of it, its gate, and
 * its exchange with experts that do nothing. A program, run from the bundle.
 *
 * <pre>{@code java ... io.deepep.djl.LayerTimes HIDDEN INTERMEDIATE EXPERTS TOPK TOKENS...}</pre>
 */
final class LayerTimes {
    private static final int WARM_UP = 10;
    private static final int TIMES = 30;

    private final Buffer buffer;
    private final NDManager manager;
    private final int hidden;
    private final int intermediate;
    private final int numExperts;
    private final int numTopk;

    private LayerTimes(Buffer buffer, NDManager manager, int[] shape) {
        this.buffer = buffer;
        this.manager = manager;
        hidden = shape[0];
        intermediate = shape[1];
        numExperts = shape[2];
        numTopk = shape[3];
    }

    /** Runs the program. */
    public static void main(String[] args) throws InterruptedException {
        int[] shape = Arrays.stream(args).limit(4).mapToInt(Integer::parseInt).toArray();
        int[] tokens = Arrays.stream(args).skip(4).mapToInt(Integer::parseInt).toArray();
        int most = Arrays.stream(tokens).max().orElseThrow();
        int mostDecoded = Math.min(most, 128);
        try (InProcessGroup group = InProcessGroup.of(TorchDevices.numGpus())) {
            group.run(
                    communicator -> {
                        Device device = TorchDevices.ofRank(communicator.rank());
                        try (NDManager manager = NDManager.newBaseManager(device, "PyTorch");
                                Buffer buffer =
                                        Buffer.builder(communicator)
                                                .device(TorchDevices.deviceOf(device))
                                                .normal(
                                                        NormalLimits.of(
                                                                most, shape[0], shape[3], shape[2]))
                                                .lowLatency(
                                                        new LowLatencyLimits(
                                                                mostDecoded,
                                                                shape[0],
                                                                shape[2],
                                                                shape[3]))
                                                .timeout(Duration.ofSeconds(30))
                                                .open()) {
                            new LayerTimes(buffer, manager, shape).time(tokens, mostDecoded);
                        }
                    });
        }
    }

    private void time(int[] tokens, int mostDecoded) {
        int numLocal = numExperts / buffer.topology().numRanks();
        LocalExperts experts =
                new SwiGluExperts(
                        random(numLocal, 2L * intermediate, hidden),
                        random(numLocal, hidden, intermediate),
                        Extras.NONE);
        for (boolean lowLatency : new boolean[] {true, false}) {
            try (ExpertExchange exchange =
                    lowLatency
                            ? ExpertExchange.lowLatency(buffer, Transport.BF16)
                            : ExpertExchange.normal(buffer, Transport.BF16)) {
                for (int numTokens : tokens) {
                    if (!lowLatency || numTokens <= mostDecoded) {
                        time(exchange, experts, numTokens, lowLatency);
                    }
                }
            }
        }
    }

    private NDArray random(long... shape) {
        NDArray array = TorchTensors.empty(manager, DType.BF16, shape);
        for (int e = 0; e < shape[0]; e++) {
            try (NDManager scope = manager.newSubManager()) {
                NDArray values =
                        scope.randomNormal(
                                0, 0.02f, array.get(scope, e).getShape(), DataType.FLOAT32);
                TorchTensors.cast(values, array.get(scope, e));
            }
        }
        return array;
    }

    private void time(
            ExpertExchange exchange, LocalExperts experts, int numTokens, boolean lowLatency) {
        ExpertGate gate = new SoftmaxGate(TopkRule.of(numExperts, numTopk));
        gate.initialize(manager, DataType.FLOAT32, new ai.djl.ndarray.types.Shape(1, hidden));
        gate.freezeParameters(true);
        NDArray x = Moe.random(manager, buffer.topology().rank(), 1, numTokens, hidden);
        double gated = micros(scope -> gate(gate, in(x, scope)));
        double moved = micros(scope -> layer(exchange, gate, LayerTimes::nothing, in(x, scope)));
        double whole = micros(scope -> layer(exchange, gate, experts, in(x, scope)));
        if (buffer.topology().rank() == 0) {
            System.out.printf(
                    "%s %d tokens: gate %.0f us, exchange %.0f us, experts %.0f us, layer %.0f us%n",
                    lowLatency ? "low-latency" : "normal",
                    numTokens,
                    gated,
                    moved - gated,
                    whole - moved,
                    whole);
        }
    }

    /** What the experts' memory holds is sent back. */
    private static NDArray nothing(ExpertRows rows) {
        return rows.areInSlots() ? rows.out() : rows.x();
    }

    private static NDArray in(NDArray x, NDManager scope) {
        NDArray view = x.reshape(x.getShape());
        view.attach(scope);
        return view;
    }

    private static NDList gate(ExpertGate gate, NDArray x) {
        return gate.forward(new ParameterStore(x.getManager(), false), new NDList(x), false);
    }

    private NDList layer(
            ExpertExchange exchange, ExpertGate gate, LocalExperts experts, NDArray x) {
        NDList routing = gate(gate, x);
        return new NDList(
                exchange.exchange(
                        x, routing.get(0), routing.get(1), numExperts, experts, () -> {}));
    }

    private interface Step {
        NDList in(NDManager scope);
    }

    /** Of one step among many, that the host may run ahead of. */
    private double micros(Step step) {
        for (int i = 0; i < WARM_UP; i++) {
            run(step);
        }
        finish();
        long start = System.nanoTime();
        for (int i = 0; i < TIMES; i++) {
            run(step);
        }
        finish();
        return (System.nanoTime() - start) / 1e3 / TIMES;
    }

    private void run(Step step) {
        try (NDManager scope = manager.newSubManager()) {
            step.in(scope);
        }
    }

    private void finish() {
        Buffer.capture(TorchStreams.current(manager.getDevice())).synchronize();
        buffer.options().communicator().barrier(Duration.ofSeconds(30));
    }
}
