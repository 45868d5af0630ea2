package io.deepep.buffer;

import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.testkit.CardFolder;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;

/** Tests that give the card in software faults, which end with each of them. */
abstract class CardCases {
    CardFolder card;

    @BeforeEach
    void findCard() {
        card = requireCard();
    }

    @AfterEach
    void withoutFaults() {
        if (card != null) {
            card.faults("");
        }
    }

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
