package io.deepep.testkit.conformance.normal;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.NormalWorld;

/** What suites of normal mode share. */
interface NormalSuite {
    String ALL = "io.deepep.testkit.conformance.normal.NormalShape#all";
    String FEW = "io.deepep.testkit.conformance.normal.NormalShape#few";
    String FEW_BF16 = "io.deepep.testkit.conformance.normal.NormalShape#fewBf16";

    /** The backend under test. */
    TestBackend backend();

    /**
     * Runs {@code body} on every rank with a buffer whose limits just suffice for {@code world}.
     */
    default void run(NormalShape shape, NormalWorld world, Ranks.Body body) {
        Ranks.run(backend(), shape.topology(), builder -> builder.normal(world.limits()), body);
    }
}
