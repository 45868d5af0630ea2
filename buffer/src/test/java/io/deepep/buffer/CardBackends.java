package io.deepep.buffer;

import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.testkit.CardFolder;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;

/** What tests need that hold IBGDA over the card in software against something else. */
final class CardBackends {
    private CardBackends() {}

    /** Skips the test where there is no card in software. */
    static CardFolder requireCard() {
        Optional<CardFolder> folder = CardFolder.ofProcess();
        boolean card =
                CudaDriver.unavailabilityReason().isEmpty()
                        && RdmaDevice.unavailabilityReason().isEmpty()
                        && folder.isPresent();
        Assumptions.assumeTrue(card, "no card in software; see -Pemulator");
        return folder.orElseThrow();
    }
}
