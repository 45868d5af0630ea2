package io.deepep.djl.decoder;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.Graph;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.LocalExperts;
import io.deepep.djl.exchange.Transport;

/** One buffer's two modes, of which the layers use the one that suits the pass. */
final class TwoModes implements ExpertExchange {
    /** Not final, so that a test can take others. */
    ExpertExchange prefill;

    ExpertExchange decoding;
    private ExpertExchange current;

    TwoModes(Buffer buffer, Transport transport) {
        prefill = ExpertExchange.normal(buffer, transport);
        try {
            decoding =
                    buffer.options().lowLatency() == null
                            ? prefill
                            : ExpertExchange.lowLatency(buffer, transport);
        } catch (Throwable failure) {
            prefill.close();
            throw failure;
        }
        current = prefill;
    }

    /** Says which comes next; all ranks say the same. */
    void decoding(boolean on) {
        current = on ? decoding : prefill;
    }

    @Override
    public EpTopology topology() {
        return prefill.topology();
    }

    @Override
    public NDArray exchange(
            NDArray x,
            NDArray topkIdx,
            NDArray topkWeights,
            int numExperts,
            LocalExperts experts,
            Runnable meanwhile) {
        return current.exchange(x, topkIdx, topkWeights, numExperts, experts, meanwhile);
    }

    @Override
    public boolean isCapturable(Device device) {
        return current.isCapturable(device);
    }

    @Override
    public Graph capture(Device device, Runnable work) {
        return current.capture(device, work);
    }

    @Override
    public void awaitLast() {
        try {
            prefill.awaitLast();
        } finally {
            decoding.awaitLast();
        }
    }

    @Override
    public void close() {
        try (ExpertExchange _ = prefill) {
            decoding.close();
        }
    }
}
