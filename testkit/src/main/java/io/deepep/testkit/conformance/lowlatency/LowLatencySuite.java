package io.deepep.testkit.conformance.lowlatency;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.Ranks;

/** What suites of low-latency mode share. */
interface LowLatencySuite {
    String ALL = "io.deepep.testkit.conformance.lowlatency.LowLatencyShape#all";
    String ALL_FORMATS = "io.deepep.testkit.conformance.lowlatency.LowLatencyShape#allFormats";
    String MOST_TOKENS = "io.deepep.testkit.conformance.lowlatency.LowLatencyShape#mostTokens";
    String FEW = "io.deepep.testkit.conformance.lowlatency.LowLatencyShape#few";

    /** The backend under test. */
    TestBackend backend();

    /** Runs {@code body} on every rank with a buffer of the shape's limits. */
    default void run(LowLatencyShape shape, Ranks.Body body) {
        shape.run(backend(), _ -> {}, body);
    }
}
