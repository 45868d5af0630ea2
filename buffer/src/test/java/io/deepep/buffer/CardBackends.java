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

    /**
     * What all cards of a folder have done, as they have last told.
     *
     * @param writes entries that move data
     * @param atomics entries that signal
     * @param doorbells a lower bound: of two in quick succession, a card may see one
     * @param completions that entries asked for
     */
    record Counts(long writes, long atomics, long doorbells, long completions) {
        static final Counts NONE = new Counts(0, 0, 0, 0);

        static Counts read(CardFolder folder) {
            return folder.told("sum ").stream().map(Counts::of).reduce(NONE, Counts::plus);
        }

        private static Counts of(String line) {
            return new Counts(
                    CardFolder.number(line, "writes"),
                    CardFolder.number(line, "atomics"),
                    CardFolder.number(line, "doorbells"),
                    CardFolder.number(line, "completions"));
        }

        private Counts plus(Counts other) {
            return new Counts(
                    writes + other.writes,
                    atomics + other.atomics,
                    doorbells + other.doorbells,
                    completions + other.completions);
        }

        Counts minus(Counts before) {
            return new Counts(
                    writes - before.writes,
                    atomics - before.atomics,
                    doorbells - before.doorbells,
                    completions - before.completions);
        }

        long entries() {
            return writes + atomics;
        }
    }
}
