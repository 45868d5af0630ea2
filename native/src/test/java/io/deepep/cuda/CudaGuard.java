package io.deepep.cuda;

import java.util.List;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/**
 * Skips tests that need a GPU; fails them where {@code -Ddeepep.require=cuda} says there must be
 * one.
 */
final class CudaGuard {
    private CudaGuard() {}

    static void requireCuda() {
        String reason = CudaDriver.unavailabilityReason().orElse("");
        List<String> required = List.of(System.getProperty("deepep.require", "").split(","));
        if (required.contains("cuda") && !CudaDriver.isAvailable()) {
            Assertions.fail("deepep.require has cuda, but: " + reason);
        }
        Assumptions.assumeTrue(CudaDriver.isAvailable(), reason);
    }
}
