package io.deepep.doctor;

/**
 * The machine, and the software that runs on it.
 *
 * @param system the operating system and its version, as in {@code Linux 6.8.0}
 * @param deepep version of the library
 */
public record HostFacts(String name, String system, String cpu, String jvm, String deepep) {
    /** Reads what the machine says; the JVM and the number of processors are this process's. */
    public static HostFacts of(Machine machine, String version) {
        return new HostFacts(
                machine.text("proc/sys/kernel/hostname").orElse("unknown"),
                machine.text("proc/sys/kernel/osrelease")
                        .map(release -> "Linux " + release)
                        .orElse(System.getProperty("os.name")),
                cpu(machine) + ", " + Runtime.getRuntime().availableProcessors() + " processors",
                System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version"),
                version);
    }

    private static String cpu(Machine machine) {
        return machine.value("proc/cpuinfo", "model name")
                .map(value -> value.substring(value.indexOf(':') + 1).strip())
                .orElse(System.getProperty("os.arch"));
    }
}
