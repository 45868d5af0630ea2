/** The oracle, routings and fault injection; the conformance suites are for JUnit alone. */
module io.deepep.testkit {
    requires transitive io.deepep;
    requires static java.logging;
    requires static org.assertj.core;
    requires static org.junit.jupiter.api;
    requires static org.junit.jupiter.params;

    exports io.deepep.testkit;
    exports io.deepep.testkit.exchange;
    exports io.deepep.testkit.oracle;
    exports io.deepep.testkit.routing;
    exports io.deepep.testkit.sysfs;

    opens io.deepep.testkit.conformance;
    opens io.deepep.testkit.conformance.lowlatency;
    opens io.deepep.testkit.conformance.mutation;
    opens io.deepep.testkit.conformance.normal;
    opens io.deepep.testkit.conformance.observation;
    opens io.deepep.testkit.conformance.replacement;
}
