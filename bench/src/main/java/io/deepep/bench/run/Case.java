package io.deepep.bench.run;

/** One thing that a test command checks. */
public interface Case {
    /** What is checked, in a few words. */
    String name();

    /**
     * Runs the case on all ranks and holds the results against the oracle.
     *
     * @return nanoseconds that the slowest rank spent in the collective calls
     * @throws AssertionError if a result is wrong; the ranks are still in step then
     */
    long run();
}
