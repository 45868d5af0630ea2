package io.deepep.bench.run;

import io.deepep.testkit.oracle.OracleMismatch;
import java.util.List;

/** Runs cases one after the other, writes a line for each, and counts. */
public final class CaseRunner {
    private static final double NANOS_PER_MILLI = 1e6;

    private final Console console;
    private final Session session;
    private int passed;
    private int failed;

    /** A runner for cases of {@code session}. */
    public CaseRunner(Console console, Session session) {
        this.console = console;
        this.session = session;
    }

    /** Runs all cases; a failure does not keep the later ones from running. */
    public void run(List<? extends Case> cases) {
        int width = cases.stream().mapToInt(each -> each.name().length()).max().orElse(0);
        try (Progress progress = Progress.of(console, "cases", cases.size())) {
            for (Case each : cases) {
                progress.at(each.name());
                run(each, width, progress);
                session.dropUnusedResults();
                progress.step();
            }
        }
    }

    private void run(Case each, int width, Progress progress) {
        long start = System.nanoTime();
        String padded = String.format("%-" + width + "s", each.name());
        try {
            double millis = each.run() / NANOS_PER_MILLI;
            passed++;
            progress.clear();
            console.line("%s  %9.2f ms  PASS", padded, millis);
        } catch (RuntimeException | AssertionError failure) {
            failed++;
            progress.clear();
            console.line(
                    "%s  %9.2f ms  FAIL", padded, (System.nanoTime() - start) / NANOS_PER_MILLI);
            console.line("    %s", String.valueOf(failure.getMessage()).replace("\n", "\n    "));
            recover(failure);
        }
    }

    /**
     * A wrong result leaves the ranks in step; after anything else only new buffers are sure to
     * work.
     */
    private void recover(Throwable failure) {
        boolean inStep =
                failure instanceof OracleMismatch
                        || (failure instanceof RankFailure of
                                && of.getCause() instanceof OracleMismatch);
        if (!inStep) {
            session.reopen();
        }
    }

    /** Cases that passed so far. */
    public int passed() {
        return passed;
    }

    /** Cases that failed so far. */
    public int failed() {
        return failed;
    }

    /** Writes the last line. */
    public void summarise() {
        console.line("%d passed, %d failed", passed, failed);
    }
}
