package io.deepep.doctor;

import io.deepep.cuda.nvshmem.NvshmemInstallation;
import io.deepep.cuda.nvshmem.NvshmemTransport;
import io.deepep.cuda.nvshmem.NvshmemVersion;
import io.deepep.error.DeepEpUnavailableException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** NVSHMEM, found without loading it, and whether this build can use it. */
final class NvshmemCheck {
    static final String TOPIC = "NVSHMEM";

    private static final String BOOTSTRAP = "nvshmem_bootstrap_uid.so.3";

    /** What plugins load that {@link NicCheck} does not look for. */
    private static final Map<NvshmemTransport, String> LIBRARIES =
            Map.of(
                    NvshmemTransport.UCX, "libucp.so.0",
                    NvshmemTransport.LIBFABRIC, "libfabric.so.1");

    private NvshmemCheck() {}

    static List<Finding> check(Machine machine, boolean networkKernels) {
        List<Finding> findings = new ArrayList<>(installation(machine));
        findings.add(
                networkKernels
                        ? Finding.ok(TOPIC, "kernels", "in this build")
                        : Finding.missing(
                                TOPIC,
                                "kernels",
                                "this build has no kernels over NVSHMEM",
                                "NVSHMEM_HOME=FOLDER ./mvnw -Pbundle -pl bench -am -DskipTests package, where"
                                        + " FOLDER has lib/libnvshmem_device.a and nvcc is installed"));
        return findings;
    }

    private static List<Finding> installation(Machine machine) {
        Optional<NvshmemInstallation> found;
        try {
            found = NvshmemInstallation.find(machine.environment(), machine.root());
        } catch (DeepEpUnavailableException e) {
            return List.of(Finding.missing(TOPIC, "library", e.reason(), e.cure()));
        }
        return found.map(installed -> describe(machine, installed))
                .orElseGet(
                        () ->
                                List.of(
                                        Finding.missing(
                                                TOPIC,
                                                "library",
                                                "not found",
                                                NvshmemInstallation.CURE)));
    }

    private static List<Finding> describe(Machine machine, NvshmemInstallation found) {
        List<Finding> findings = new ArrayList<>();
        String where = found.library() + " (" + found.foundBy() + ")";
        findings.add(Finding.ok(TOPIC, "library", where));
        findings.add(version(found));
        findings.add(plugin(found, "bootstrap", BOOTSTRAP));
        for (NvshmemTransport transport : NvshmemTransport.values()) {
            transport
                    .plugin()
                    .ifPresent(file -> findings.add(transport(machine, found, transport, file)));
        }
        return findings;
    }

    private static Finding version(NvshmemInstallation found) {
        if (found.version().isEmpty()) {
            return Finding.info(TOPIC, "version", "known only when it is loaded");
        }
        NvshmemVersion version = found.version().get();
        return version.isSupported()
                ? Finding.ok(TOPIC, "version", version.toString())
                : Finding.missing(
                        TOPIC,
                        "version",
                        version + " does not support device code of " + NvshmemVersion.DEVICE,
                        NvshmemInstallation.CURE);
    }

    private static Finding transport(
            Machine machine, NvshmemInstallation found, NvshmemTransport transport, String file) {
        Finding plugin = plugin(found, transport.name(), file);
        String library = LIBRARIES.get(transport);
        return plugin.isOk() && library != null && !machine.hasLibrary(library)
                ? Finding.missing(
                        TOPIC,
                        transport.name(),
                        file + " needs " + library + ", not found",
                        "sudo apt install " + transport.packages())
                : plugin;
    }

    private static Finding plugin(NvshmemInstallation found, String item, String file) {
        return Files.exists(found.libraryFolder().resolve(file))
                ? Finding.ok(TOPIC, item, file)
                : Finding.missing(
                        TOPIC, item, file + " is not beside it", NvshmemInstallation.CURE);
    }
}
