package io.deepep.djl.decoder;

import java.util.List;

/** One rank's prompts of a request, while they are continued. */
final class Share {
    /** Chooses their tokens, in their order. */
    final Sampler sampler;

    /** Where each prompt is kept on the rank. */
    final int[] slots;

    final List<long[]> prompts;

    /** New tokens of each, counted by the decoder; the first comes with the reading. */
    int made = 1;

    Share(Sampler sampler, int[] slots, List<long[]> prompts) {
        this.sampler = sampler;
        this.slots = slots;
        this.prompts = prompts;
    }

    /** Position of the last new token of prompt {@code i}. */
    long position(int i) {
        return prompts.get(i).length + made - 1L;
    }

    /**
     * Copies into an answer what steps have given prompt {@code i}.
     *
     * @param ofSlots what {@link Decoder#step} returned last
     */
    void copy(long[][] ofSlots, int i, long[] answer) {
        long[] tokens = ofSlots[slots[i]];
        System.arraycopy(tokens, 0, answer, made - tokens.length, tokens.length);
    }
}
