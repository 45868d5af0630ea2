package io.deepep.djl.exchange;

import ai.djl.ndarray.NDArray;
import io.deepep.Buffer;
import io.deepep.EpTopology;

/**
 * Brings tokens to the experts of all ranks and the results home, through a {@link Buffer}: one for
 * all layers of a model on one rank, which run one after the other. Collective like the buffer's
 * calls: every rank exchanges equally often, those without tokens too.
 *
 * <p>Its counters are a platform MXBean, see {@link ExpertExchangeMXBean}. Closing it leaves the
 * buffer open.
 */
public interface ExpertExchange extends AutoCloseable {
    /**
     * In normal mode, for prefill and large batches: exact counts, any number of tokens up to the
     * limit.
     *
     * @param buffer opened with {@code normal} limits
     */
    static ExpertExchange normal(Buffer buffer, Transport transport) {
        return new NormalExchange(buffer, transport);
    }

    /**
     * In low-latency mode, for decoding: fixed slots, the FP8 cast in the kernel, weights applied
     * where the token came from.
     *
     * @param buffer opened with {@code lowLatency} limits
     */
    static ExpertExchange lowLatency(Buffer buffer, Transport transport) {
        return new LowLatencyExchange(buffer, transport);
    }

    /** This rank's place in the group. */
    EpTopology topology();

    /**
     * Sends every token to its experts, runs this rank's on what arrives, and sums the results by
     * weight: {@code y[t] = sum over k of topkWeights[t,k] * expert[topkIdx[t,k]](x[t])}.
     *
     * <p>On a GPU of the rank's own all of it is enqueued on libtorch's current stream, except for
     * counts that the host waits for; a failure of the combine is thrown by the next exchange.
     * Ranks that are threads and share a GPU take turns, and wait for every call.
     *
     * @param x [T,H], FLOAT32 or FLOAT16; T may differ between ranks and be 0
     * @param topkIdx INT64 [T,K], global experts, -1 for none
     * @param topkWeights FLOAT32 [T,K]
     * @param numExperts E of all ranks
     * @param experts this rank's
     * @param meanwhile runs while the tokens are on their way, for work that needs no expert
     * @return [T,H] in the type of {@code x}, attached to its manager
     */
    NDArray exchange(
            NDArray x,
            NDArray topkIdx,
            NDArray topkWeights,
            int numExperts,
            LocalExperts experts,
            Runnable meanwhile);

    /**
     * Waits for the last exchange, throws a failure that nobody has seen yet, frees the staging
     * memory and takes the counters off JMX. Idempotent.
     */
    @Override
    void close();
}
