package io.deepep.djl.exchange;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.Graph;
import io.deepep.LowLatencyLimits;
import io.deepep.djl.TorchGraph;

/**
 * Sends tokens to the experts of all ranks and combines the results, through a {@link Buffer}. All
 * layers of a model on a rank share one exchange, and run one after the other. Exchanges are
 * collective, like the calls of the buffer: every rank makes the same number of them, even without
 * tokens.
 *
 * <p>The counters of an exchange are a platform MXBean, see {@link ExpertExchangeMXBean}. Closing
 * the exchange leaves the buffer open.
 */
public interface ExpertExchange extends AutoCloseable {
    /**
     * In normal mode, for prefill and large batches: exact counts, any number of tokens up to the
     * limit.
     *
     * @param buffer opened with {@code normal} limits; for FP8, these have the {@link
     *     #paddedHidden} of the tokens
     */
    static ExpertExchange normal(Buffer buffer, Transport transport) {
        return new NormalExchange(buffer, transport);
    }

    /**
     * In low-latency mode, for decoding: fixed slots, the FP8 cast in the kernel, weights applied
     * where the token came from.
     *
     * @param buffer opened with {@code lowLatency} limits that have the {@link #paddedHidden} of
     *     the tokens, or more
     */
    static ExpertExchange lowLatency(Buffer buffer, Transport transport) {
        return new LowLatencyExchange(buffer, transport);
    }

    /**
     * The hidden size that tokens of H channels have as FP8, and that low-latency limits are for:
     * the next multiple of 128. The exchange adds zeros to tokens where FP8 needs them.
     */
    static int paddedHidden(int hidden) {
        return Math.ceilDiv(hidden, LowLatencyLimits.HIDDEN_MULTIPLE)
                * LowLatencyLimits.HIDDEN_MULTIPLE;
    }

    /** This rank's place in the group. */
    EpTopology topology();

    /**
     * Sends every token to its experts, runs this rank's experts on the rows that arrive, and sums
     * the weighted results: {@code y[t] = sum over k of topkWeights[t,k] *
     * expert[topkIdx[t,k]](x[t])}.
     *
     * <p>On GPUs everything is enqueued on libtorch's current stream, except for counts that the
     * host waits for; a failure of the combine is thrown by the next exchange, or by {@link
     * #awaitLast}. Ranks that are threads meet before and after dispatch and combine.
     *
     * @param x [T,H], FLOAT32 or FLOAT16; T may differ between ranks and be 0, and H is a multiple
     *     of 8
     * @param topkIdx INT64 [T,K], global experts, -1 for no selection
     * @param topkWeights FLOAT32 [T,K]
     * @param numExperts experts of all ranks; in low-latency mode, those of the buffer's limits
     * @param experts this rank's experts
     * @param meanwhile work that does not need the experts' results, run while the tokens travel
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
     * Waits for the last exchange, and throws its failure if none was thrown yet. Ask before you
     * give results away: after a failure they are wrong.
     */
    void awaitLast();

    /** Whether exchanges of arrays on a device can be {@linkplain #capture captured}. */
    default boolean isCapturable(Device device) {
        return false;
    }

    /**
     * Captures libtorch's operations and exchanges, see {@link TorchGraph#capture}. The experts
     * must not ask for {@link ExpertRows#counts}, which the host does not learn: they compute all
     * slots, or those {@linkplain ExpertRows#inUse in use}. Collective, and so are replays. Make
     * the same exchanges twice before, and have all ranks meet before the first replay. What went
     * wrong in a replay, {@link #awaitLast} throws. Close the graph before the exchange, which
     * frees memory that replays use.
     *
     * @param device where the arrays are
     * @throws UnsupportedOperationException if this exchange cannot be captured
     */
    default Graph capture(Device device, Runnable work) {
        throw new UnsupportedOperationException(
                "exchanges of this kind cannot be captured; make them without a graph");
    }

    /**
     * Does what {@link #awaitLast} does, frees the staging memory, and unregisters the counters
     * from JMX. Idempotent.
     */
    @Override
    void close();
}
