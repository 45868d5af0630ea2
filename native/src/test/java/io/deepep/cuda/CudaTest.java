package io.deepep.cuda;

import io.deepep.testkit.conformance.RequiredBackends;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;

/** The bindings against a real driver; {@link CudaSmoke} runs the same checks without JUnit. */
@Tag("ptx")
class CudaTest {
    private static CheckContext context;

    @BeforeAll
    static void open() {
        RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
        context = new CheckContext();
    }

    @AfterAll
    static void close() {
        if (context != null) {
            context.close();
        }
    }

    @TestFactory
    Stream<DynamicTest> checks() {
        return CudaSmoke.checks().entrySet().stream()
                .map(check -> DynamicTest.dynamicTest(check.getKey(), () -> run(check.getValue())));
    }

    private static void run(CudaSmoke.Check check) throws Exception {
        try {
            check.run(context);
        } catch (CheckContext.NotHereException e) {
            Assumptions.abort(e.getMessage());
        }
    }
}
