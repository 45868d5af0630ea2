package io.deepep.cuda.nvshmem;

import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.posix.SysFiles;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * An NVSHMEM on this machine. Nothing is loaded to find it.
 *
 * @param library the host library's file
 * @param version empty where only the library itself could tell
 * @param foundBy the variable or the kind of place that led to it
 */
public record NvshmemInstallation(Path library, Optional<NvshmemVersion> version, String foundBy) {
    /** Names a folder with an installation, before all other places. */
    public static final String HOME_VARIABLE = "DEEPEP_NVSHMEM_HOME";

    /** What to do where there is none. */
    public static final String CURE =
            "install NVSHMEM %1$s (pip install nvidia-nvshmem-cu13==%1$s) or set %2$s to a folder that has it"
                    .formatted(NvshmemVersion.DEVICE, HOME_VARIABLE);

    /** The file beside the library by which processes meet. */
    public static final String BOOTSTRAP = "nvshmem_bootstrap_uid.so.3";

    static final String LIBRARY = "libnvshmem_host.so.3";

    private static final Pattern PACKAGE =
            Pattern.compile("nvidia_nvshmem_cu\\d+-([\\d.]+).*\\.dist-info");
    private static final Pattern VERSION_MACRO =
            Pattern.compile("#define NVSHMEM_VENDOR_(MAJOR|MINOR|PATCH)_VERSION (\\d+)");
    private static final List<String> OTHER_HOME_VARIABLES = List.of("NVSHMEM_HOME", "NVSHMEM_DIR");

    /**
     * Looks for an installation: where a variable says, in Python packages, in the folders of
     * system packages.
     *
     * @param environment the process's variables
     * @param root {@code /}
     * @return the first one; empty if there is none
     * @throws DeepEpUnavailableException if {@link #HOME_VARIABLE} names a folder that has none
     */
    public static Optional<NvshmemInstallation> find(Map<String, String> environment, Path root) {
        String home = environment.get(HOME_VARIABLE);
        if (home != null && !home.isBlank()) {
            return Optional.of(in(Path.of(home), HOME_VARIABLE));
        }
        return new NvshmemPlaces(environment, root)
                .all(OTHER_HOME_VARIABLES)
                .flatMap(place -> at(place.folder(), place.foundBy()).stream())
                .findFirst();
    }

    /** As {@link #find(Map, Path)} on this machine. */
    public static Optional<NvshmemInstallation> find() {
        return find(System.getenv(), Path.of("/"));
    }

    /**
     * The installation in a folder that somebody named.
     *
     * @param foundBy who named it, for messages
     * @throws DeepEpUnavailableException if the folder has none
     */
    public static NvshmemInstallation in(Path home, String foundBy) {
        return Stream.of(home.resolve("lib"), home.resolve("lib64"), home)
                .flatMap(folder -> at(folder, foundBy).stream())
                .findFirst()
                .orElseThrow(
                        () ->
                                new DeepEpUnavailableException(
                                        foundBy + "=" + home + " has no lib/" + LIBRARY, CURE));
    }

    /** The folder of the library, its bootstraps and transports. */
    public Path libraryFolder() {
        return library.getParent();
    }

    private static Optional<NvshmemInstallation> at(Path folder, String foundBy) {
        Path library = folder.resolve(LIBRARY);
        return Files.isRegularFile(library)
                ? Optional.of(new NvshmemInstallation(library, version(library), foundBy))
                : Optional.empty();
    }

    private static Optional<NvshmemVersion> version(Path library) {
        return versionOfFile(library)
                .or(() -> versionOfHeader(library))
                .or(() -> versionOfPackage(library));
    }

    /** A system package's library is a link to libnvshmem_host.so.3.4.5. */
    private static Optional<NvshmemVersion> versionOfFile(Path library) {
        return SysFiles.targetName(library)
                .map(name -> name.substring(name.indexOf(".so.") + ".so.".length()))
                .flatMap(NvshmemVersion::find);
    }

    private static Optional<NvshmemVersion> versionOfHeader(Path library) {
        Path header = library.resolve("../../include/non_abi/nvshmem_version.h").normalize();
        Matcher matcher = VERSION_MACRO.matcher(SysFiles.text(header).orElse(""));
        int[] parts = {-1, -1, -1};
        while (matcher.find()) {
            int part = List.of("MAJOR", "MINOR", "PATCH").indexOf(matcher.group(1));
            parts[part] = Integer.parseInt(matcher.group(2));
        }
        return NvshmemVersion.find(parts[0] + "." + parts[1] + "." + parts[2]);
    }

    /** {@code site-packages/nvidia/nvshmem/lib/...} has its dist-info in site-packages. */
    private static Optional<NvshmemVersion> versionOfPackage(Path library) {
        return SysFiles.names(library.resolve("../../../..").normalize()).stream()
                .map(PACKAGE::matcher)
                .filter(Matcher::matches)
                .flatMap(matcher -> NvshmemVersion.find(matcher.group(1)).stream())
                .findFirst();
    }
}
