package io.deepep.buffer.parity;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * A backend does what the reference in PyTorch says: every golden vector that it wrote, bit for bit
 * where that is defined. Also the files of the folder that {@code -Ddeepep.parityVectors} names,
 * such as those that {@code compare_deep_ep.py --save} writes.
 */
@BackendSuite
record VectorConformance(TestBackend backend) {
    private static final String PYTORCH = "pytorch";

    /** The golden vectors that the reference wrote. */
    @TestFactory
    List<DynamicTest> goldenVectors() throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        for (String name : VectorFiles.golden(PYTORCH)) {
            add(tests, name, VectorFiles.bytes(PYTORCH + "/" + name));
        }
        return tests;
    }

    /** The vectors of a folder. */
    @TestFactory
    List<DynamicTest> givenVectors() throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        for (Path file : VectorFiles.given()) {
            add(tests, file.getFileName().toString(), Files.readAllBytes(file));
        }
        return tests;
    }

    /** Adds the case unless the backend has no such groups; its ranks are threads. */
    private void add(List<DynamicTest> tests, String name, byte[] file) throws IOException {
        ParityCase parity = ParityCase.from(SafetensorsFile.read(file));
        if (backend.supports(parity.topology()) && !backend.needsProcessPerRank()) {
            tests.add(
                    DynamicTest.dynamicTest(
                            name,
                            () ->
                                    OutcomeCheck.check(
                                            parity, new CaseRunner(backend, parity).run())));
        }
    }
}
