package io.deepep.djl.decoder;

import java.util.List;

/** One rank's prompts of a request, while they are continued. */
final class Share {
    /** Chooses their tokens, in their order. */
    final Sampler sampler;

    /** Where each prompt is kept on the rank. */
    final int[] slots;

    final List<long[]> prompts;

    /** New tokens of each; the decoder counts them. */
    int made;

    Share(Sampler sampler, int[] slots, List<long[]> prompts) {
        this.sampler = sampler;
        this.slots = slots;
        this.prompts = prompts;
    }

    /** Position of the last new token of prompt {@code i}. */
    long position(int i) {
        return prompts.get(i).length + made - 1L;
    }
}
