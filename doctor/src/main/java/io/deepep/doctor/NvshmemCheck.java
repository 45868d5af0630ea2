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
    static final Check LIBRARY = new Check("NVSHMEM", "library");
    static final Check VERSION = new Check("NVSHMEM", "version");
    static final Check BOOTSTRAP = new Check("NVSHMEM", "bootstrap");
    static final Check KERNELS = new Check("NVSHMEM", "kernels");

    /** Of transports that list all of a host, as {@link NvshmemTransport#usesHcaList} says. */
    static final Check DEVICES = new Check("NVSHMEM", "RDMA devices");

    /** What plugins load that {@link NicCheck} does not look for. */
    private static final Map<NvshmemTransport, String> LIBRARIES =
            Map.of(
                    NvshmemTransport.UCX, "libucp.so.0",
                    NvshmemTransport.LIBFABRIC, "libfabric.so.1");

    private NvshmemCheck() {}

    static List<Finding> check(Machine machine, boolean networkKernels) {
        List<Finding> findings = new ArrayList<>(installation(machine));
        int numDevices = machine.names("sys/class/infiniband").size();
        if (numDevices > NvshmemTransport.MAX_DEVICES) {
            findings.add(
                    DEVICES.missing(
                            "%s are more than the %s that it has room for"
                                    .formatted(numDevices, NvshmemTransport.MAX_DEVICES),
                            NvshmemTransport.TOO_MANY_DEVICES_CURE));
        }
        findings.add(
                networkKernels
                        ? KERNELS.ok("in this build")
                        : KERNELS.missing(
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
            return List.of(LIBRARY.missing(e.reason(), e.cure()));
        }
        return found.map(installed -> describe(machine, installed))
                .orElseGet(() -> List.of(LIBRARY.missing("not found", NvshmemInstallation.CURE)));
    }

    private static List<Finding> describe(Machine machine, NvshmemInstallation found) {
        List<Finding> findings = new ArrayList<>();
        String where = found.library() + " (" + found.foundBy() + ")";
        findings.add(LIBRARY.ok(where));
        findings.add(version(found));
        findings.add(plugin(found, BOOTSTRAP, NvshmemInstallation.BOOTSTRAP));
        for (NvshmemTransport transport : NvshmemTransport.values()) {
            transport
                    .plugin()
                    .ifPresent(file -> findings.add(transport(machine, found, transport, file)));
        }
        return findings;
    }

    private static Finding version(NvshmemInstallation found) {
        if (found.version().isEmpty()) {
            return VERSION.info("known only when it is loaded");
        }
        NvshmemVersion version = found.version().get();
        return version.isSupported()
                ? VERSION.ok(version.toString())
                : VERSION.missing(
                        version + " does not support device code of " + NvshmemVersion.DEVICE,
                        NvshmemInstallation.CURE);
    }

    /** Whether a transport's plugin is there. */
    static Check check(NvshmemTransport transport) {
        return new Check("NVSHMEM", transport.name());
    }

    private static Finding transport(
            Machine machine, NvshmemInstallation found, NvshmemTransport transport, String file) {
        String library = LIBRARIES.get(transport);
        Finding plugin = plugin(found, check(transport), file);
        return plugin.isOk() && library != null && !machine.hasLibrary(library)
                ? check(transport)
                        .missing(
                                file + " needs " + library + ", not found",
                                "sudo apt install " + transport.packages())
                : plugin;
    }

    private static Finding plugin(NvshmemInstallation found, Check check, String file) {
        return Files.exists(found.libraryFolder().resolve(file))
                ? check.ok(file)
                : check.missing(file + " is not in the library folder", NvshmemInstallation.CURE);
    }
}
