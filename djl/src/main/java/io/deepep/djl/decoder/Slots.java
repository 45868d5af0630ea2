package io.deepep.djl.decoder;

import ai.djl.ndarray.NDManager;

/** How many sequences a cache is for, and how long they may become. */
record Slots(int numSlots, int maxLength) {
    KvCache cache(NDManager manager, long numHeads, long channels) {
        return new KvCache(manager, numSlots, maxLength, numHeads, channels);
    }
}
