package io.deepep.bench.doctor;

import io.deepep.cuda.nvshmem.NvshmemInstallation;
import io.deepep.cuda.nvshmem.NvshmemVersion;
import io.deepep.error.DeepEpUnavailableException;
import java.nio.file.Files;
import java.util.List;
import java.util.Optional;

/** NVSHMEM, found without loading it. */
final class NvshmemCheck {
    private static final String TOPIC = "NVSHMEM";

    private NvshmemCheck() {}

    static List<Finding> check(Machine machine) {
        Optional<NvshmemInstallation> found;
        try {
            found = NvshmemInstallation.find(machine.environment(), machine.root());
        } catch (DeepEpUnavailableException e) {
            return List.of(Finding.missing(TOPIC, "library", e.reason(), e.cure()));
        }
        return found.map(NvshmemCheck::describe)
                .orElseGet(
                        () ->
                                List.of(
                                        Finding.missing(
                                                TOPIC,
                                                "library",
                                                "not found",
                                                NvshmemInstallation.CURE)));
    }

    private static List<Finding> describe(NvshmemInstallation found) {
        String where = found.library() + " (" + found.foundBy() + ")";
        return List.of(
                Finding.ok(TOPIC, "library", where),
                version(found),
                plugin(found, "bootstrap", "nvshmem_bootstrap_uid.so.3"),
                plugin(found, "IBRC", "nvshmem_transport_ibrc.so.3"),
                plugin(found, "IBGDA", "nvshmem_transport_ibgda.so.3"));
    }

    private static Finding version(NvshmemInstallation found) {
        if (found.version().isEmpty()) {
            return Finding.info(TOPIC, "version", "told only when it is loaded");
        }
        NvshmemVersion version = found.version().get();
        return version.isSupported()
                ? Finding.ok(TOPIC, "version", version.toString())
                : Finding.missing(
                        TOPIC,
                        "version",
                        version + " does not take device code of " + NvshmemVersion.DEVICE,
                        NvshmemInstallation.CURE);
    }

    private static Finding plugin(NvshmemInstallation found, String item, String file) {
        return Files.exists(found.libraryFolder().resolve(file))
                ? Finding.ok(TOPIC, item, file)
                : Finding.missing(
                        TOPIC, item, file + " is not beside it", NvshmemInstallation.CURE);
    }
}
