package io.deepep.djl.decoder;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import io.deepep.EpTopology;
import io.deepep.Graph;
import io.deepep.djl.exchange.ExpertExchange;
import io.deepep.djl.exchange.LocalExperts;

/** Does what another exchange does, and counts the exchanges that the host makes. */
class CountingExchange implements ExpertExchange {
    private final ExpertExchange real;
    int numExchanges;

    CountingExchange(ExpertExchange real) {
        this.real = real;
    }

    @Override
    public EpTopology topology() {
        return real.topology();
    }

    @Override
    public NDArray exchange(
            NDArray x,
            NDArray topkIdx,
            NDArray topkWeights,
            int numExperts,
            LocalExperts experts,
            Runnable meanwhile) {
        numExchanges++;
        return real.exchange(x, topkIdx, topkWeights, numExperts, experts, meanwhile);
    }

    @Override
    public boolean isCapturable(Device device) {
        return real.isCapturable(device);
    }

    @Override
    public Graph capture(Device device, Runnable work) {
        return real.capture(device, work);
    }

    @Override
    public void awaitLast() {
        real.awaitLast();
    }

    @Override
    public void close() {
        real.close();
    }
}
