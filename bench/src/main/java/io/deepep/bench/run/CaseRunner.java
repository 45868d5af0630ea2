package io.deepep.bench.run;

import io.deepep.error.DeepEpUnavailableException;
import io.deepep.testkit.oracle.OracleMismatch;
import java.util.List;

/** Runs cases one after the other, writes a line for each, and counts. */
public final class CaseRunner {
    private static final double NANOS_PER_MILLI = 1e6;

    private final Console console;
    private final Session session;
    private int passed;
    private int failed;

    private CaseRunner(Console console, Session session) {
        this.console = console;
        this.session = session;
    }

    /**
     * Runs all cases and, if all passed, {@code afterwards}; then writes the last line.
     *
     * @return whether all passed
     */
    public static boolean verify(
            Console console, Session session, List<? extends Case> cases, Runnable afterwards) {
        CaseRunner runner = new CaseRunner(console, session);
        runner.run(cases);
        if (runner.failed == 0) {
            afterwards.run();
        }
        console.line("%d passed, %d failed", runner.passed, runner.failed);
        return runner.failed == 0;
    }

    /**
     * Runs all cases; a failure does not keep the later ones from running, unless it is that the
     * machine has too little of something.
     */
    private void run(List<? extends Case> cases) {
        int width = cases.stream().mapToInt(each -> each.name().length()).max().orElse(0);
        try (Progress progress = Progress.of(console, "cases", cases.size())) {
            for (Case each : cases) {
                progress.at(each.name());
                run(each, width);
                session.dropUnusedResults();
                progress.step();
            }
        }
    }

    private void run(Case each, int width) {
        long start = System.nanoTime();
        String padded = String.format("%-" + width + "s", each.name());
        try {
            double millis = each.run() / NANOS_PER_MILLI;
            passed++;
            console.line("%s  %9.2f ms  PASS", padded, millis);
        } catch (RuntimeException | AssertionError failure) {
            if (isLack(failure.getCause())) {
                throw failure; // each later case would wait for the same rank
            }
            failed++;
            console.line(
                    "%s  %9.2f ms  FAIL", padded, (System.nanoTime() - start) / NANOS_PER_MILLI);
            console.line("    %s", String.valueOf(failure.getMessage()).replace("\n", "\n    "));
            recover(failure);
        }
    }

    private static boolean isLack(Throwable cause) {
        return cause instanceof OutOfMemoryError || cause instanceof DeepEpUnavailableException;
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
}
