package io.deepep.cuda.nvshmem;

import io.deepep.spi.posix.SysFiles;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/** Folders in which an NVSHMEM library may lie, likely ones first. */
record NvshmemPlaces(Map<String, String> environment, Path root) {
    private static final String PACKAGE_FOLDER = "nvidia/nvshmem/lib";
    private static final List<String> SYSTEM_FOLDERS =
            List.of(
                    "usr/lib/x86_64-linux-gnu/nvshmem",
                    "usr/lib/aarch64-linux-gnu/nvshmem",
                    "usr/lib64/nvshmem",
                    "usr/local/nvshmem",
                    "opt/nvidia/nvshmem",
                    "usr/lib/x86_64-linux-gnu",
                    "usr/lib/aarch64-linux-gnu",
                    "usr/lib64",
                    "usr/local/lib",
                    "usr/local/cuda/lib64");

    /** A folder, and what led to it. */
    record Place(Path folder, String foundBy) {}

    Stream<Place> all(List<String> homeVariables) {
        return Stream.of(
                        homeVariables.stream().flatMap(this::inHome),
                        pythonPrefixes().flatMap(this::inPrefix),
                        paths("LD_LIBRARY_PATH").map(path -> new Place(path, "LD_LIBRARY_PATH")),
                        SYSTEM_FOLDERS.stream().flatMap(this::inSystem))
                .flatMap(places -> places);
    }

    private Stream<Place> inHome(String variable) {
        return variable(variable).stream()
                .flatMap(home -> Stream.of(home.resolve("lib"), home.resolve("lib64")))
                .map(folder -> new Place(folder, variable));
    }

    /** Where Python packages lie: environments, the interpreters on the path, the system's own. */
    private Stream<Path> pythonPrefixes() {
        return Stream.of(
                        Stream.of("VIRTUAL_ENV", "CONDA_PREFIX")
                                .flatMap(name -> variable(name).stream()),
                        paths("PATH")
                                .filter(folder -> Files.exists(folder.resolve("python3")))
                                .flatMap(folder -> Stream.ofNullable(folder.getParent())),
                        variable("HOME").map(home -> home.resolve(".local")).stream(),
                        Stream.of("usr/local", "usr").map(root::resolve))
                .flatMap(prefixes -> prefixes)
                .distinct();
    }

    private Stream<Place> inPrefix(Path prefix) {
        Path lib = prefix.resolve("lib");
        return SysFiles.names(lib).stream()
                .filter(name -> name.startsWith("python3"))
                .map(lib::resolve)
                .flatMap(python -> Stream.of("site-packages", "dist-packages").map(python::resolve))
                .map(packages -> new Place(packages.resolve(PACKAGE_FOLDER), "Python package"));
    }

    /** A folder of its own, with subfolders for versions of CUDA, or one shared with others. */
    private Stream<Place> inSystem(String name) {
        Path folder = root.resolve(name);
        Stream<Path> below =
                folder.endsWith("nvshmem")
                        ? Stream.concat(Stream.of("lib"), newestFirst(folder)).map(folder::resolve)
                        : Stream.empty();
        return Stream.concat(Stream.of(folder), below)
                .map(path -> new Place(path, "system package"));
    }

    private static Stream<String> newestFirst(Path folder) {
        return SysFiles.names(folder).reversed().stream();
    }

    private Optional<Path> variable(String name) {
        return Optional.ofNullable(environment.get(name))
                .filter(value -> !value.isBlank())
                .map(Path::of);
    }

    private Stream<Path> paths(String variable) {
        return Stream.of(environment.getOrDefault(variable, "").split(":"))
                .filter(path -> !path.isBlank())
                .map(Path::of);
    }
}
