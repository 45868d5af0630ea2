package io.deepep.bench.measure;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Results that the oracle has accepted. It is slow, so a result with the same bits as one that it
 * has accepted is accepted too; any other one goes to the oracle.
 */
public final class Accepted {
    private final Map<List<Object>, Long> known = new ConcurrentHashMap<>();

    /** Calls {@code oracle}, which throws if it is wrong, unless it has seen these bits. */
    public void accept(int rank, Object what, long bits, Runnable oracle) {
        List<Object> key = List.of(rank, what);
        Long before = known.get(key);
        if (before == null || before != bits) {
            oracle.run();
            known.put(key, bits);
        }
    }
}
