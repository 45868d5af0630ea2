package io.deepep.testkit.conformance.lowlatency;

/** The shapes that suites of low-latency mode take. */
interface LowLatencySuite {
    String ALL = "io.deepep.testkit.conformance.lowlatency.LowLatencyShape#all";
    String ALL_FORMATS = "io.deepep.testkit.conformance.lowlatency.LowLatencyShape#allFormats";
    String MOST_TOKENS = "io.deepep.testkit.conformance.lowlatency.LowLatencyShape#mostTokens";
    String FEW = "io.deepep.testkit.conformance.lowlatency.LowLatencyShape#few";
}
