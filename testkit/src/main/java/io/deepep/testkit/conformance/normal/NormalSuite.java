package io.deepep.testkit.conformance.normal;

/** The shapes that suites of normal mode take. */
interface NormalSuite {
    String ALL = "io.deepep.testkit.conformance.normal.NormalShape#all";
    String FEW = "io.deepep.testkit.conformance.normal.NormalShape#few";
    String FEW_BF16 = "io.deepep.testkit.conformance.normal.NormalShape#fewBf16";
}
