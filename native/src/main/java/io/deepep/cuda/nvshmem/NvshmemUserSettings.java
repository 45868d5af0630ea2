package io.deepep.cuda.nvshmem;

import io.deepep.error.DeepEpUnavailableException;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Variables of NVSHMEM that the user has set for this process. They are used where the program
 * leaves a choice open, and never replaced: one that contradicts what is needed is refused by name.
 *
 * @param variables by name
 */
public record NvshmemUserSettings(Map<String, String> variables) {
    /** Nothing is set. */
    public static final NvshmemUserSettings NONE = new NvshmemUserSettings(Map.of());

    private static final String PREFIX = "NVSHMEM_";
    private static final String UCX_DEVICES = "UCX_NET_DEVICES";

    /** Those that say nothing about what ranks have in common. */
    private static final Set<String> OF_ONE_RANK =
            Set.of(
                    "NVSHMEM_HCA_LIST",
                    "NVSHMEM_HCA_PE_MAPPING",
                    "NVSHMEM_HCA_PREFIX",
                    "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME",
                    "NVSHMEM_DEBUG",
                    "NVSHMEM_DEBUG_FILE",
                    "NVSHMEM_DEBUG_SUBSYS",
                    "NVSHMEM_HOME",
                    "NVSHMEM_DIR",
                    UCX_DEVICES);

    /** Keeps what belongs to NVSHMEM. */
    public NvshmemUserSettings {
        SortedMap<String, String> own = new TreeMap<>(variables);
        own.keySet().removeIf(name -> !name.startsWith(PREFIX) && !name.equals(UCX_DEVICES));
        variables = Map.copyOf(own);
    }

    /** Those of this process, as it was started. */
    public static NvshmemUserSettings ofProcess() {
        return new NvshmemUserSettings(System.getenv());
    }

    /** A variable's text. */
    public Optional<String> text(String name) {
        return Optional.ofNullable(variables.get(name)).filter(value -> !value.isBlank());
    }

    /** Whether a variable is set. */
    public boolean has(String name) {
        return text(name).isPresent();
    }

    /**
     * A variable's number.
     *
     * @throws DeepEpUnavailableException if it is something else
     */
    public OptionalInt number(String name) {
        Optional<String> text = text(name);
        if (text.isEmpty()) {
            return OptionalInt.empty();
        }
        try {
            return OptionalInt.of(Integer.parseInt(text.get().strip()));
        } catch (NumberFormatException e) {
            throw new DeepEpUnavailableException(
                    name + "=" + text.get() + " is not a number", "correct or unset it", e);
        }
    }

    /** Whether a variable is set to true. */
    public boolean flag(String name) {
        return text(name).map(NvshmemUserSettings::normal).filter("1"::equals).isPresent();
    }

    /**
     * Refuses variables with another value than the one needed.
     *
     * @throws DeepEpUnavailableException naming the variable and both values
     */
    void requireAgreement(Map<String, String> needed) {
        needed.forEach(
                (name, value) -> {
                    String set = variables.get(name);
                    if (set != null && !normal(set).equals(normal(value))) {
                        throw new DeepEpUnavailableException(
                                "%s=%s is set in the environment, but this buffer needs %s=%s"
                                        .formatted(name, set, name, value),
                                "unset it, or choose the same in Network.nvshmem");
                    }
                });
    }

    /** What must be the same for all ranks. */
    SortedMap<String, String> shared() {
        SortedMap<String, String> shared = new TreeMap<>(variables);
        shared.keySet().removeAll(OF_ONE_RANK);
        return shared;
    }

    private static String normal(String value) {
        return switch (value.strip().toLowerCase(Locale.ROOT)) {
            case "true", "yes", "y", "on", "1" -> "1";
            case "false", "no", "n", "off", "0" -> "0";
            default -> value.strip();
        };
    }
}
