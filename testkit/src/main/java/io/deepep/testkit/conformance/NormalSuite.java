package io.deepep.testkit.conformance;

import io.deepep.testkit.TestBackend;

/** What suites of normal mode share. */
interface NormalSuite {
    String ALL = "io.deepep.testkit.conformance.NormalShape#all";
    String FEW = "io.deepep.testkit.conformance.NormalShape#few";
    String FEW_BF16 = "io.deepep.testkit.conformance.NormalShape#fewBf16";

    /** The backend under test. */
    TestBackend backend();

    /**
     * Runs {@code body} on every rank with a buffer whose limits just suffice for {@code world}.
     */
    default void run(NormalShape shape, NormalWorld world, Ranks.Body body) {
        Ranks.run(backend(), shape.topology(), builder -> builder.normal(world.limits()), body);
    }
}
