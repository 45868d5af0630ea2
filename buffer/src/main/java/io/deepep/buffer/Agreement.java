package io.deepep.buffer;

import io.deepep.spi.HeapRanks;

/**
 * What ranks agreed on before they share memory.
 *
 * @param buffer tells the ranks' buffer from any other that they have
 * @param ranks who shares memory; all are new when a buffer opens
 */
record Agreement(String buffer, HeapRanks ranks) {}
