package io.deepep.buffer.parity;

import io.deepep.EpTopology;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.RequiredBackends;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * A backend does what the reference in PyTorch says: every golden vector that it wrote, bit for bit
 * where that is defined. Also the files of the folder that {@code -Ddeepep.parityVectors} names,
 * such as those that {@code compare_deep_ep.py --save} writes.
 */
public abstract class VectorConformance {
    private static final String PYTORCH = "pytorch";

    /** Creates the suite. */
    protected VectorConformance() {}

    /** The backend for groups like {@code topology} in one of the two modes. */
    protected abstract TestBackend backend(EpTopology topology, boolean lowLatency);

    /** The golden vectors that the reference wrote. */
    @TestFactory
    Stream<DynamicTest> goldenVectors() throws IOException {
        return VectorFiles.golden(PYTORCH).stream()
                .map(
                        name ->
                                DynamicTest.dynamicTest(
                                        name, () -> run(VectorFiles.bytes(PYTORCH + "/" + name))));
    }

    /** The vectors of a folder. */
    @TestFactory
    Stream<DynamicTest> givenVectors() throws IOException {
        return VectorFiles.given().stream()
                .map(
                        (Path file) ->
                                DynamicTest.dynamicTest(
                                        file.getFileName().toString(),
                                        () -> run(Files.readAllBytes(file))));
    }

    private void run(byte[] file) throws IOException, InterruptedException {
        ParityCase parity = ParityCase.from(SafetensorsFile.read(file));
        TestBackend backend = backend(parity.topology(), parity.isLowLatency());
        String reason = backend.unavailabilityReason().orElse("");
        RequiredBackends.assume(backend.kind(), reason.isEmpty(), reason);
        Assumptions.assumeTrue(
                backend.supports(parity.topology()),
                () -> backend.kind() + " has no groups like " + parity.topology());
        OutcomeCheck.check(parity, new CaseRunner(backend, parity).run());
    }
}
