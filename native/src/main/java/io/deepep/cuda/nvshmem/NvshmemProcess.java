package io.deepep.cuda.nvshmem;

import io.deepep.cuda.driver.NativeEnvironment;
import io.deepep.error.DeepEpUnavailableException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/**
 * What NVSHMEM is in this process. It has global state: one PE per process, an environment that it
 * reads once, and no way back from a failed start.
 */
final class NvshmemProcess {
    /** This process. */
    static final NvshmemProcess CURRENT = new NvshmemProcess();

    private boolean open;
    private String failure;
    private Path library;
    private Map<String, String> environment;

    /**
     * Makes this process a PE; {@link #leave} or {@link #fail} ends that.
     *
     * @throws IllegalStateException if it is one already, or was one with other settings
     * @throws DeepEpUnavailableException if it failed to be one earlier
     */
    synchronized void enter(Path newLibrary, Map<String, String> newEnvironment) {
        if (failure != null) {
            throw new DeepEpUnavailableException(
                    "NVSHMEM cannot be used again in this process: " + failure,
                    "restart the process");
        }
        if (open) {
            throw new IllegalStateException(
                    "NVSHMEM is already open in this process; close it, or start one process per rank");
        }
        if (environment != null) {
            requireSame("library", library.toString(), newLibrary.toString());
            Map<String, String> all = new TreeMap<>(environment);
            all.putAll(newEnvironment);
            for (String name : all.keySet()) {
                requireSame(name, environment.get(name), newEnvironment.get(name));
            }
        }
        library = newLibrary;
        open = true;
    }

    private static void requireSame(String name, String before, String now) {
        if (!Objects.equals(before, now)) {
            throw new IllegalStateException(
                    ("%s comes too late: NVSHMEM was started in this process with %s; start the process again"
                                    + " with this setting, or use the same options")
                            .formatted(setting(name, now), setting(name, before)));
        }
    }

    private static String setting(String name, String value) {
        return value == null ? name + " unset" : name + "=" + value;
    }

    /** Sets the variables that NVSHMEM reads at its first call, which comes now. */
    synchronized void latch(Map<String, String> newEnvironment) {
        if (environment == null) {
            newEnvironment.forEach(NativeEnvironment::set);
            environment = Map.copyOf(newEnvironment);
        }
    }

    /** It is no PE any more, and may become one again. */
    synchronized void leave() {
        open = false;
    }

    /** It cannot become one again. */
    synchronized void fail(String reason) {
        open = false;
        failure = reason;
    }
}
