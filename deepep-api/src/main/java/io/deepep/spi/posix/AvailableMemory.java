package io.deepep.spi.posix;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;

/**
 * The memory that this process can still allocate before the kernel's OOM killer ends a process:
 * what is available on the machine, limited by the control groups of the process (versions 1 and
 * 2).
 */
public final class AvailableMemory {
    private static final long UNKNOWN = Long.MAX_VALUE;

    private final Path proc;
    private final Path cgroups;

    /** Reads the given folders instead of {@code /proc} and {@code /sys/fs/cgroup}. */
    AvailableMemory(Path proc, Path cgroups) {
        this.proc = proc;
        this.cgroups = cgroups;
    }

    /** Bytes that can be allocated; {@link Long#MAX_VALUE} if the system does not tell. */
    public static long bytes() {
        return new AvailableMemory(Path.of("/proc"), Path.of("/sys/fs/cgroup")).read();
    }

    long read() {
        long available = ofMachine();
        for (String line : lines(proc.resolve("self/cgroup"))) {
            String[] parts = line.split(":", 3);
            if (parts.length == 3 && parts[1].isEmpty()) {
                available = Math.min(available, ofGroup(cgroups, parts[2], Version.TWO));
            } else if (parts.length == 3 && List.of(parts[1].split(",")).contains("memory")) {
                Path root = cgroups.resolve("memory");
                available = Math.min(available, ofGroup(root, parts[2], Version.ONE));
            }
        }
        return available;
    }

    private long ofMachine() {
        long kib = field(proc.resolve("meminfo"), "MemAvailable:");
        return kib == UNKNOWN ? UNKNOWN : 1024 * kib;
    }

    /** How the versions name their files. */
    private enum Version {
        ONE("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        TWO("memory.max", "memory.current", "inactive_file");

        private final String limit;
        private final String usage;
        private final String reclaimable;

        Version(String limit, String usage, String reclaimable) {
            this.limit = limit;
            this.usage = usage;
            this.reclaimable = reclaimable;
        }
    }

    /**
     * The least that the group or one of its parents leaves. A container may not see its own path;
     * and one that the locale cannot spell is not found either.
     */
    private static long ofGroup(Path root, String path, Version version) {
        long available = UNKNOWN;
        Path group;
        try {
            group = root.resolve(path.substring(1)).normalize();
        } catch (InvalidPathException unspellable) {
            group = root;
        }
        for (; group != null && group.startsWith(root); group = group.getParent()) {
            long limit = number(group.resolve(version.limit));
            long usage = number(group.resolve(version.usage));
            if (limit != UNKNOWN && usage != UNKNOWN) {
                long cache = field(group.resolve("memory.stat"), version.reclaimable);
                long free = limit - usage + (cache == UNKNOWN ? 0 : cache);
                available = Math.min(available, Math.max(0, free));
            }
        }
        return available;
    }

    /** The only number of a file; {@code max} is none. */
    private static long number(Path file) {
        List<String> lines = lines(file);
        return lines.isEmpty() ? UNKNOWN : parse(lines.getFirst());
    }

    /** The number behind {@code name}. */
    private static long field(Path file, String name) {
        return lines(file).stream()
                .map(line -> line.trim().split("\\s+"))
                .filter(words -> words.length > 1 && words[0].equals(name))
                .mapToLong(words -> parse(words[1]))
                .findFirst()
                .orElse(UNKNOWN);
    }

    private static long parse(String digits) {
        try {
            return Long.parseLong(digits.trim());
        } catch (NumberFormatException noLimit) {
            return UNKNOWN;
        }
    }

    private static List<String> lines(Path file) {
        return SysFiles.text(file).stream().flatMap(String::lines).toList();
    }
}
