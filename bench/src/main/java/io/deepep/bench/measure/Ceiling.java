package io.deepep.bench.measure;

import java.util.Collections;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * What a bare copy of rows between all ranks at once reaches, measured in the same run: bytes per
 * second and GPU, one direction, by number of multiprocessors per rank.
 *
 * @param rowBytes of the rows copied
 * @param push rows written to the other ranks
 * @param pull rows read from the other ranks
 */
public record Ceiling(
        long rowBytes, SortedMap<Integer, Double> push, SortedMap<Integer, Double> pull) {
    /** Keeps copies. */
    public Ceiling {
        push = Collections.unmodifiableSortedMap(new TreeMap<>(push));
        pull = Collections.unmodifiableSortedMap(new TreeMap<>(pull));
    }

    /** With the given number of multiprocessors, in the direction of an operation. */
    public double at(int sms, boolean pushes) {
        return (pushes ? push : pull).get(sms);
    }

    /** The most that any number of multiprocessors reached, in either direction. */
    public double best() {
        return Math.max(Collections.max(push.values()), Collections.max(pull.values()));
    }
}
