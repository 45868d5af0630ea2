package io.deepep;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;

/**
 * The number of multiprocessors that normal mode needs on a machine, as measured by {@code deepep
 * bench normal --profile FILE}. A buffer uses it if no configuration is given, see {@link
 * Buffer.Builder#profile}. The file has the format of {@link Properties}, in UTF-8, with exactly
 * these keys.
 *
 * @param gpu model of the GPUs, as the driver names it
 * @param nodes number of nodes in the measurement; any number above 1 applies to all groups of
 *     several nodes
 * @param dispatchSms multiprocessors of a dispatch: an even number, or 1 on one node
 * @param combineSms multiprocessors of a combine: an even number, or 1 on one node
 */
public record MachineProfile(String gpu, int nodes, int dispatchSms, int combineSms) {
    private static final Set<String> KEYS = Set.of("gpu", "nodes", "dispatchSms", "combineSms");
    private static final String CURE = "; write it again with deepep bench normal --profile";

    /** Validates the numbers. */
    public MachineProfile {
        if (gpu.isBlank()) {
            throw new IllegalArgumentException("gpu is empty; give the model of the GPUs");
        }
        Numbers.requirePositive("nodes", nodes);
        requireNumSms("dispatchSms", dispatchSms, nodes);
        requireNumSms("combineSms", combineSms, nodes);
    }

    private static void requireNumSms(String key, int number, int nodes) {
        try {
            Config.requireNumSms(number);
        } catch (IllegalArgumentException refused) {
            throw new IllegalArgumentException(key + ": " + refused.getMessage(), refused);
        }
        if (number == 1 && nodes > 1) {
            throw new IllegalArgumentException(key + "=1 is for one node, but nodes=" + nodes);
        }
    }

    /**
     * Reads a profile from a file.
     *
     * @throws IllegalArgumentException if the file cannot be read, or is not a profile
     */
    public static MachineProfile read(Path file) {
        Properties found = new Properties();
        try (Reader text = Files.newBufferedReader(file)) {
            found.load(text);
            return of(found);
        } catch (IOException unreadable) {
            throw new IllegalArgumentException(
                    "profile %s cannot be read (%s); give a file that deepep bench normal --profile wrote"
                            .formatted(file, reason(unreadable)),
                    unreadable);
        } catch (IllegalArgumentException refused) {
            throw new IllegalArgumentException(
                    "profile " + file + ": " + refused.getMessage() + CURE, refused);
        }
    }

    private static String reason(IOException unreadable) {
        String kind = unreadable.getClass().getSimpleName();
        String said =
                unreadable instanceof FileSystemException refused
                        ? refused.getReason()
                        : unreadable.getMessage();
        return said == null ? kind : kind + ": " + said;
    }

    private static MachineProfile of(Properties found) {
        if (!found.stringPropertyNames().equals(KEYS)) {
            throw new IllegalArgumentException(
                    "its keys are %s, but a profile has exactly %s"
                            .formatted(
                                    new TreeSet<>(found.stringPropertyNames()),
                                    new TreeSet<>(KEYS)));
        }
        return new MachineProfile(
                found.getProperty("gpu").strip(),
                number(found, "nodes"),
                number(found, "dispatchSms"),
                number(found, "combineSms"));
    }

    private static int number(Properties found, String key) {
        String text = found.getProperty(key).strip();
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException refused) {
            throw new IllegalArgumentException(key + "=" + text + " is not a whole number");
        }
    }

    /** The content of a file that {@link #read} reads. */
    public String toText() {
        return "gpu = %s%nnodes = %s%ndispatchSms = %s%ncombineSms = %s%n"
                .formatted(gpu.replace("\\", "\\\\"), nodes, dispatchSms, combineSms);
    }
}
