package io.deepep.djl.decoder;

import io.deepep.DType;
import io.deepep.djl.exchange.Transport;

/**
 * The options of a decoder. The same on every rank.
 *
 * @param maxSequences most sequences of a rank at once, which is also the most tokens of a decoding
 *     step
 * @param maxLength most tokens of a sequence, prompt and answer together
 * @param maxPromptTokens most tokens of all prompts of a rank together
 * @param type BF16 or F32, the type of weights
 * @param transport how tokens travel to the experts
 * @param graph whether decoding steps in low-latency mode are captured into a CUDA graph, which the
 *     host launches in one call; without effect on the CPU
 */
public record DecoderOptions(
        int maxSequences,
        int maxLength,
        int maxPromptTokens,
        DType type,
        Transport transport,
        boolean graph) {
    /** Eight sequences of up to 512 tokens, 1024 of them in prompts, weights as BF16. */
    public static final DecoderOptions DEFAULT =
            new DecoderOptions(8, 512, 1024, DType.BF16, Transport.BF16);

    /** Options with a graph. */
    public DecoderOptions(
            int maxSequences, int maxLength, int maxPromptTokens, DType type, Transport transport) {
        this(maxSequences, maxLength, maxPromptTokens, type, transport, true);
    }

    /** Validates the numbers. */
    public DecoderOptions {
        if (maxSequences < 1 || maxLength < 2 || maxPromptTokens < 1) {
            throw new IllegalArgumentException(
                    "maxSequences=%s, maxLength=%s and maxPromptTokens=%s must be at least 1, 2 and 1"
                            .formatted(maxSequences, maxLength, maxPromptTokens));
        }
    }

    /** A copy of these options with a different type of weights. */
    public DecoderOptions withType(DType other) {
        return new DecoderOptions(
                maxSequences, maxLength, maxPromptTokens, other, transport, graph);
    }

    /** A copy of these options with a graph or without. */
    public DecoderOptions withGraph(boolean on) {
        return new DecoderOptions(maxSequences, maxLength, maxPromptTokens, type, transport, on);
    }
}
