package io.deepep.bench.doctor;

import io.deepep.bench.measure.Build;

/** The machine, and what runs on it. */
public record HostFacts(String name, String kernel, String cpu, String jvm, String deepep) {
    static HostFacts of(Machine machine) {
        Build build = Build.current();
        return new HostFacts(
                machine.text("proc/sys/kernel/hostname").orElse("unknown"),
                machine.text("proc/sys/kernel/osrelease").orElse("unknown"),
                build.cpu(),
                build.jvm(),
                build.version() + " (" + build.commit() + ")");
    }
}
