package io.deepep.cuda;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Runs every check of the bindings and prints a line for each; for GPU hosts that have nothing but
 * a Java runtime.
 */
public final class CudaSmoke {
    /** One check; returns or throws. */
    interface Check {
        void run(CheckContext context) throws Exception;
    }

    private CudaSmoke() {}

    static Map<String, Check> checks() {
        Map<String, Check> checks = new LinkedHashMap<>();
        MemoryChecks.addTo(checks);
        StreamChecks.addTo(checks);
        LaunchChecks.addTo(checks);
        SharingChecks.addTo(checks);
        ProcessChecks.addTo(checks);
        return checks;
    }

    /** Exit status 1 if a check failed, 2 without CUDA. */
    public static void main(String[] args) {
        if (!CudaDriver.isAvailable()) {
            System.out.println("no CUDA: " + CudaDriver.unavailabilityReason().orElseThrow());
            System.exit(2);
        }
        System.out.println("driver " + CudaDriver.version() + ", " + CudaDriver.devices());
        int numFailed = 0;
        try (CheckContext context = new CheckContext()) {
            for (Map.Entry<String, Check> check : checks().entrySet()) {
                numFailed += passes(check.getKey(), check.getValue(), context) ? 0 : 1;
            }
        }
        System.out.println(
                checks().size() - numFailed + " passed or skipped, " + numFailed + " failed");
        System.exit(numFailed == 0 ? 0 : 1);
    }

    private static boolean passes(String name, Check check, CheckContext context) {
        try {
            check.run(context);
            System.out.println("PASS " + name);
            return true;
        } catch (CheckContext.NotHereException e) {
            System.out.println("SKIP " + name + ": " + e.getMessage());
            return true;
        } catch (Exception | AssertionError e) {
            System.out.println("FAIL " + name + ": " + e);
            e.printStackTrace(System.out);
            return false;
        }
    }
}
