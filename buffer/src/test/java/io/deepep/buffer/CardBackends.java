package io.deepep.buffer;

import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.rdma.RdmaDevice;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** What tests need that hold IBGDA over the card in software against something else. */
final class CardBackends {
    private CardBackends() {}

    /** Skips the test where there is no card in software. */
    static Path requireCard() {
        boolean card =
                CudaDriver.unavailabilityReason().isEmpty()
                        && RdmaDevice.unavailabilityReason().isEmpty()
                        && System.getenv("DEEPEP_CARD_FOLDER") != null;
        Assumptions.assumeTrue(card, "no card in software; see -Pemulator");
        return Path.of(System.getenv("DEEPEP_CARD_FOLDER"));
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
        static Counts read(Path folder) throws IOException {
            Counts all = new Counts(0, 0, 0, 0);
            try (Stream<Path> files = Files.list(folder)) {
                List<Path> counters =
                        files.filter(f -> f.getFileName().toString().matches("counters-\\d+"))
                                .toList();
                for (Path file : counters) {
                    for (String line : Files.readAllLines(file)) {
                        if (line.startsWith("sum ")) {
                            all =
                                    new Counts(
                                            all.writes + number(line, "writes"),
                                            all.atomics + number(line, "atomics"),
                                            all.doorbells + number(line, "doorbells"),
                                            all.completions + number(line, "completions"));
                        }
                    }
                }
            }
            return all;
        }

        private static long number(String line, String name) {
            Matcher found = Pattern.compile("\\b" + name + "=(\\d+)").matcher(line);
            if (!found.find()) {
                throw new AssertionError("no " + name + " in " + line);
            }
            return Long.parseLong(found.group(1));
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
