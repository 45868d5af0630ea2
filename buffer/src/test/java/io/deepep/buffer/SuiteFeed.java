package io.deepep.buffer;

import java.io.PrintStream;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;

/**
 * Says how the tests of each class went when it ends, and at once what failed, if the property
 * {@code deepep.feed} is true: a long run shows where it is, and one that is cut short has told
 * what it saw. {@code deepep-tests} asks for it.
 */
public final class SuiteFeed implements TestExecutionListener {
    private static final double NANOS_PER_SECOND = 1e9;

    private final boolean wanted;
    private final PrintStream out;
    private final Map<TestIdentifier, Tally> tallies = new HashMap<>();
    private TestPlan plan;

    /** Of one class. */
    private static final class Tally {
        private final long begin = System.nanoTime();
        private int passed;
        private int failed;
        private int aborted;
    }

    /** For JUnit. */
    public SuiteFeed() {
        this(Boolean.getBoolean("deepep.feed"), System.out);
    }

    SuiteFeed(boolean wanted, PrintStream out) {
        this.wanted = wanted;
        this.out = out;
    }

    @Override
    public void testPlanExecutionStarted(TestPlan begun) {
        plan = begun;
    }

    @Override
    public synchronized void executionStarted(TestIdentifier test) {
        if (wanted && classOf(test).filter(test::equals).isPresent()) {
            tallies.put(test, new Tally());
        }
    }

    @Override
    public synchronized void executionFinished(TestIdentifier test, TestExecutionResult result) {
        Tally tally = classOf(test).map(tallies::get).orElse(null);
        if (tally == null) {
            return;
        }
        switch (result.getStatus()) {
            case FAILED -> {
                tally.failed++;
                String why = result.getThrowable().map(Throwable::toString).orElse("");
                out.println("FAILED " + name(test) + ": " + why.replaceAll("\\s+", " "));
            }
            case ABORTED -> tally.aborted += test.isTest() ? 1 : 0;
            case SUCCESSFUL -> tally.passed += test.isTest() ? 1 : 0;
        }
        if (tallies.remove(test) != null) {
            out.println(
                    String.format(
                            Locale.ROOT,
                            "%-70s %4d passed %3d failed %3d aborted %7.1f s",
                            test.getDisplayName(),
                            tally.passed,
                            tally.failed,
                            tally.aborted,
                            (System.nanoTime() - tally.begin) / NANOS_PER_SECOND));
        }
    }

    /** The outermost class that a test belongs to. */
    private Optional<TestIdentifier> classOf(TestIdentifier test) {
        Optional<TestIdentifier> found = Optional.empty();
        for (Optional<TestIdentifier> at = Optional.of(test);
                at.isPresent();
                at = plan.getParent(at.get())) {
            if (at.get().getSource().filter(ClassSource.class::isInstance).isPresent()) {
                found = at;
            }
        }
        return found;
    }

    /** With the names of what it belongs to, from its class on. */
    private String name(TestIdentifier test) {
        TestIdentifier outermost = classOf(test).orElse(test);
        StringBuilder name = new StringBuilder(test.getDisplayName());
        for (TestIdentifier at = test; !at.equals(outermost); ) {
            at = plan.getParent(at).orElse(outermost);
            name.insert(0, at.getDisplayName() + " > ");
        }
        return name.toString();
    }
}
