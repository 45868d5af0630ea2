package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpUnavailableException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Installations as they lie on disks; no library is loaded to find them. */
class NvshmemInstallationTest {
    private static final NvshmemVersion VERSION = new NvshmemVersion(3, 4, 5);

    @TempDir private Path root;
    private final Map<String, String> environment = new HashMap<>();

    private Path file(String path) throws IOException {
        return file(path, "");
    }

    private Path file(String path, String content) throws IOException {
        Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        return Files.writeString(file, content);
    }

    private NvshmemInstallation found() {
        return NvshmemInstallation.find(environment, root).orElseThrow();
    }

    @Test
    void nothingIsFoundWhereNothingIs() {
        environment.put("PATH", root.resolve("bin").toString());
        environment.put("DEEPEP_NVSHMEM_HOME", " ");
        assertThat(NvshmemInstallation.find(environment, root)).isEmpty();
    }

    /** What lies in the folder that a process happens to be in is not loaded. */
    @Test
    void emptyVariablesNameNoFolder() {
        environment.put("VIRTUAL_ENV", "");
        environment.put("NVSHMEM_HOME", " ");
        environment.put("LD_LIBRARY_PATH", root + "::" + root);
        assertThat(new NvshmemPlaces(environment, root).all(List.of("NVSHMEM_HOME")))
                .isNotEmpty()
                .allMatch(place -> place.folder().isAbsolute());
    }

    @ParameterizedTest
    @CsvSource({
        "usr/local/lib/python3.12/dist-packages/nvidia/nvshmem/lib, Python package",
        "usr/lib/python3/dist-packages/nvidia/nvshmem/lib, Python package",
        "usr/lib/x86_64-linux-gnu/nvshmem/13, system package",
        "usr/lib64/nvshmem, system package",
        "usr/local/nvshmem/lib, system package",
        "usr/lib/x86_64-linux-gnu, system package"
    })
    void knownPlacesAreLookedAt(String place, String foundBy) throws IOException {
        Path library = file(place + "/libnvshmem_host.so.3");
        assertThat(found().library()).isEqualTo(library);
        assertThat(found().foundBy()).isEqualTo(foundBy);
        assertThat(found().libraryFolder()).isEqualTo(root.resolve(place));
    }

    @ParameterizedTest
    @CsvSource({
        "VIRTUAL_ENV, venv, venv/lib/python3.11/site-packages/nvidia/nvshmem/lib",
        "CONDA_PREFIX, conda, conda/lib/python3.12/site-packages/nvidia/nvshmem/lib",
        "HOME, home, home/.local/lib/python3.10/site-packages/nvidia/nvshmem/lib",
        "NVSHMEM_HOME, own, own/lib",
        "NVSHMEM_DIR, own, own/lib64",
        "LD_LIBRARY_PATH, own/libraries, own/libraries"
    })
    void variablesLeadToPlaces(String variable, String value, String place) throws IOException {
        Path library = file(place + "/libnvshmem_host.so.3");
        environment.put(variable, root.resolve(value).toString());
        assertThat(found().library()).isEqualTo(library);
    }

    @Test
    void interpreterOnThePathLeadsToItsPackages() throws IOException {
        file("opt/env/bin/python3");
        Path library =
                file(
                        "opt/env/lib/python3.12/site-packages/nvidia/nvshmem/lib/libnvshmem_host.so.3");
        environment.put("PATH", root.resolve("sbin") + ":" + root.resolve("opt/env/bin"));
        assertThat(found().library()).isEqualTo(library);
    }

    @Test
    void homeThatTheUserNamesGoesFirstAndMustHaveIt() throws IOException {
        file("usr/lib64/nvshmem/libnvshmem_host.so.3");
        Path library = file("mine/libnvshmem_host.so.3");
        environment.put("DEEPEP_NVSHMEM_HOME", root.resolve("mine").toString());
        assertThat(found().library()).isEqualTo(library);
        assertThat(found().foundBy()).isEqualTo("DEEPEP_NVSHMEM_HOME");

        environment.put("DEEPEP_NVSHMEM_HOME", root.resolve("empty").toString());
        assertThatThrownBy(this::found)
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining(
                        "DEEPEP_NVSHMEM_HOME="
                                + root.resolve("empty")
                                + " has no lib/libnvshmem_host.so.3")
                .hasMessageContaining("pip install nvidia-nvshmem-cu13==3.4.5");
    }

    @Test
    void packagesGoBeforeSystemFolders() throws IOException {
        file("usr/lib64/nvshmem/libnvshmem_host.so.3");
        file("usr/local/lib/python3.12/dist-packages/nvidia/nvshmem/lib/libnvshmem_host.so.3");
        assertThat(found().foundBy()).isEqualTo("Python package");
    }

    @Test
    void newestCudaIsTakenOfSystemPackages() throws IOException {
        file("usr/lib/x86_64-linux-gnu/nvshmem/12/libnvshmem_host.so.3");
        Path newest = file("usr/lib/x86_64-linux-gnu/nvshmem/13/libnvshmem_host.so.3");
        assertThat(found().library()).isEqualTo(newest);
    }

    @Test
    void versionIsInTheNameOfTheFile() throws IOException {
        file("usr/lib64/nvshmem/libnvshmem_host.so.3.4.5");
        Files.createSymbolicLink(
                root.resolve("usr/lib64/nvshmem/libnvshmem_host.so.3"),
                Path.of("libnvshmem_host.so.3.4.5"));
        assertThat(found().version()).contains(VERSION);
    }

    @Test
    void versionIsInTheHeader() throws IOException {
        file("mine/lib/libnvshmem_host.so.3");
        file(
                "mine/include/non_abi/nvshmem_version.h",
                """
                #define NVSHMEM_VENDOR_MAJOR_VERSION 3
                #define NVSHMEM_VENDOR_MINOR_VERSION 4
                #define NVSHMEM_VENDOR_PATCH_VERSION 5
                #define NVSHMEM_VENDOR_PACKAGE_VERSION 0
                """);
        assertThat(NvshmemInstallation.in(root.resolve("mine"), "test").version())
                .contains(VERSION);
    }

    @Test
    void versionIsInTheNameOfThePackage() throws IOException {
        String packages = "usr/local/lib/python3.12/dist-packages/";
        file(packages + "nvidia/nvshmem/lib/libnvshmem_host.so.3");
        file(packages + "nvidia_nvshmem_cu13-3.4.5.dist-info/METADATA");
        assertThat(found().version()).contains(VERSION);
    }

    @Test
    void versionMayBeUnknown() throws IOException {
        file("mine/lib/libnvshmem_host.so.3");
        file("mine/include/non_abi/nvshmem_version.h", "#define NVSHMEM_VENDOR_MAJOR_VERSION 3\n");
        assertThat(NvshmemInstallation.in(root.resolve("mine"), "test").version()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({
        "3, 4, 5, true",
        "3, 4, 0, true",
        "3, 5, 1, true",
        "3, 3, 24, false",
        "4, 4, 5, false"
    })
    void hostLibraryMustNotBeOlder(int major, int minor, int patch, boolean supported) {
        assertThat(new NvshmemVersion(major, minor, patch).isSupported()).isEqualTo(supported);
    }

    @Test
    void versionIsWhatATextBeginsWith() {
        assertThat(VERSION).hasToString("3.4.5");
        assertThat(NvshmemVersion.find("3.4.5-0")).contains(VERSION);
        assertThat(NvshmemVersion.find("3.4")).isEmpty();
    }
}
