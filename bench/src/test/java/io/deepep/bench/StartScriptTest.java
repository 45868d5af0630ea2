package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.Programs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code ./deepep} in a checkout whose Maven and JDK are scripts that say how they were called. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("checkout")
class StartScriptTest {
    private static final Path SCRIPT = Path.of("..", "deepep");

    @TempDir private Path folder;
    private Path checkout;
    private Path jdk;

    @BeforeEach
    void makeCheckout() throws IOException {
        checkout = Files.createDirectories(folder.resolve("checkout"));
        jdk = folder.resolve("jdk");
        Files.createDirectories(jdk.resolve("bin"));
        Files.copy(SCRIPT, checkout.resolve("deepep"));
        makeExecutable(checkout.resolve("deepep"));
        Files.writeString(checkout.resolve("pom.xml"), "");
        scriptBuild(":");
        script(jdk.resolve("bin/java"), "echo \"$@\"");
        script(jdk.resolve("bin/javac"));
        Files.writeString(jdk.resolve("release"), "JAVA_VERSION=\"25.0.1\"\n");
    }

    /**
     * Makes the build.
     *
     * @param before what it does first
     */
    private void scriptBuild(String before) throws IOException {
        script(
                checkout.resolve("mvnw"),
                "echo \"built with HOME=$HOME\" >>builds",
                before,
                "mkdir -p bench/target/launcher",
                "touch bench/target/launcher/built");
    }

    private static void script(Path file, String... lines) throws IOException {
        List<String> all = new ArrayList<>(List.of("#!/bin/sh"));
        all.addAll(List.of(lines));
        Files.write(file, all);
        makeExecutable(file);
    }

    private static void makeExecutable(Path file) {
        assertThat(file.toFile().setExecutable(true)).isTrue();
    }

    private Process start(Path where, String... without) throws IOException {
        return start(List.of(where.resolve("deepep").toString(), "--version"), without);
    }

    private Process start(List<String> command, String... without) throws IOException {
        ProcessBuilder builder = builder(command).redirectErrorStream(true);
        builder.environment().keySet().removeAll(Set.of(without));
        return builder.start();
    }

    private ProcessBuilder builder(List<String> command) {
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("JAVA_HOME", jdk.toString());
        return builder;
    }

    private static String outputOf(Process process) throws Exception {
        return Programs.awaitEnd(process).requireSuccess();
    }

    private List<String> builds() throws IOException {
        return Files.readAllLines(checkout.resolve("builds"));
    }

    @Test
    void manyFirstStartsBuildOnce() throws Exception {
        scriptBuild("sleep 1");
        List<Process> starts = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            starts.add(start(checkout));
        }
        for (Process each : starts) {
            assertThat(outputOf(each)).contains("io.deepep.bench.Main --version");
        }
        assertThat(builds()).hasSize(1);
        outputOf(start(checkout));
        assertThat(builds()).hasSize(1);
    }

    @Test
    void aFailedBuildIsTriedAgainByTheNext() throws Exception {
        script(checkout.resolve("mvnw"), "exit 1");
        Programs.Ended failed = Programs.awaitEnd(start(checkout));
        assertThat(failed.output()).contains("the build failed");
        assertThat(failed.status()).isEqualTo(2);
        makeCheckoutAgain();
        outputOf(start(checkout));
        assertThat(builds()).hasSize(1);
    }

    @Test
    void aBuildSaysHowFarItIsAndWhatIsWrong() throws Exception {
        script(
                checkout.resolve("mvnw"),
                "echo '[INFO] Building deepep-api 0.1.0-SNAPSHOT                [2/12]'",
                "echo '[INFO] Compiling 70 source files'",
                "echo '[ERROR] no such symbol'",
                "exit 1");
        Programs.Ended failed = Programs.awaitEnd(start(checkout));
        assertThat(failed.output().lines())
                .contains("deepep: Building deepep-api [2/12]", "[ERROR] no such symbol")
                .noneMatch(line -> line.contains("Compiling"));
        assertThat(failed.status()).isEqualTo(2);
    }

    @Test
    void whoCannotBuildIsToldWhatToDo() throws Exception {
        List<String> command =
                new ArrayList<>(List.of(checkout.resolve("deepep").toString(), "--version"));
        if (Files.isWritable(Path.of("/"))) { // root can write everywhere
            command.addAll(0, List.of("setpriv", "--reuid=65534", "--clear-groups"));
        }
        try {
            setMode("r-xr-xr-x");
            Programs.Ended refused = Programs.awaitEnd(start(command));
            assertThat(refused.output()).contains("this user cannot write to " + checkout);
            assertThat(refused.status()).isEqualTo(2);
        } finally {
            setMode("rwx------");
        }
    }

    private void setMode(String mode) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path each : files.toList()) {
                Files.setPosixFilePermissions(each, PosixFilePermissions.fromString(mode));
            }
        }
    }

    private void makeCheckoutAgain() throws IOException {
        Files.delete(checkout.resolve("deepep"));
        makeCheckout();
    }

    @Test
    void aHomeIsFoundWhereNoneIsSet() throws Exception {
        outputOf(start(checkout, "HOME"));
        assertThat(builds()).singleElement().asString().matches("built with HOME=/.*");
    }

    /** As another user's folder, in which sudo was called. */
    @Test
    void aFolderThatTheUserCannotReadDoesNotMatter() throws Exception {
        outputOf(start(checkout));
        Path closed = Files.createDirectory(folder.resolve("closed"));
        try {
            assertThat(outputOf(startIn(closed, "chmod 0 .")))
                    .contains("io.deepep.bench.Main --version")
                    .doesNotContain(closed.toString());
        } finally {
            Files.setPosixFilePermissions(closed, PosixFilePermissions.fromString("rwx------"));
        }
    }

    @Test
    void aFolderThatIsGoneIsSaid() throws Exception {
        outputOf(start(checkout));
        Path gone = Files.createDirectory(folder.resolve("gone"));
        Programs.Ended refused = Programs.awaitEnd(startIn(gone, "rmdir \"$PWD\""));
        assertThat(refused.output()).contains("deepep: the current folder is gone");
        assertThat(refused.status()).isEqualTo(2);
    }

    /** Starts the command in a folder, after that which is done with the folder. */
    private Process startIn(Path where, String before) throws IOException {
        List<String> command = new ArrayList<>();
        if (Files.isWritable(Path.of("/"))) { // root can read everywhere
            command.addAll(List.of("setpriv", "--bounding-set=-dac_override,-dac_read_search"));
        }
        command.addAll(
                List.of(
                        "sh",
                        "-c",
                        "cd '%s' && %s && exec '%s' --version"
                                .formatted(where, before, checkout.resolve("deepep"))));
        return start(command);
    }

    @Test
    void aCopyRunsItsOwnJars() throws Exception {
        outputOf(start(checkout));
        Path copy = folder.resolve("copy");
        try (Stream<Path> files = Files.walk(checkout)) {
            for (Path file : files.toList()) {
                Path target = copy.resolve(checkout.relativize(file).toString());
                Files.copy(file, target, java.nio.file.StandardCopyOption.COPY_ATTRIBUTES);
            }
        }
        assertThat(outputOf(start(copy)))
                .contains(copy.toRealPath() + "/bench/target/launcher/*")
                .doesNotContain(checkout.toRealPath().toString());
    }

    @Test
    void javaItselfRunsWithTheLibrary() throws Exception {
        String script = checkout.resolve("deepep").toString();
        assertThat(outputOf(start(List.of(script, "java", "Example.java", "argument"))))
                .contains("--enable-native-access=ALL-UNNAMED")
                .contains("/bench/target/launcher/* Example.java argument")
                .doesNotContain("io.deepep.bench.Main");
    }

    /** Which may come at any time, e.g. when JVMs start together; stdout is read by programs. */
    @Test
    void whatTheJvmWarnsOfIsOnStandardError() throws Exception {
        script(jdk.resolve("bin/java"), "exec '" + Programs.jvm().getFirst() + "' \"$@\"");
        String script = checkout.resolve("deepep").toString();
        List<String> command = List.of(script, "java", "-XX:SharedArchiveFile=/none", "-version");
        Process process = builder(command).start();
        assertThat(outputOf(process)).isEmpty();
        assertThat(process.errorReader().readAllAsString()).contains("/none");
    }

    @ParameterizedTest
    @CsvSource({"LANG,''", "LANG,C", "LC_ALL,POSIX", "LC_CTYPE,xx_XX.UTF-8"})
    void namesOfFilesAreUtf8WhereTheLocaleIsAscii(String variable, String locale) throws Exception {
        script(jdk.resolve("bin/java"), "locale charmap");
        assertThat(outputOf(startIn(variable, locale)).strip()).isEqualTo("UTF-8");
    }

    @Test
    void anotherLocaleStays() throws Exception {
        script(jdk.resolve("bin/java"), "echo \"LC_ALL=$LC_ALL LANG=$LANG\"");
        assertThat(outputOf(startIn("LANG", "C.UTF-8")).strip()).isEqualTo("LC_ALL= LANG=C.UTF-8");
    }

    private Process startIn(String variable, String locale) throws IOException {
        ProcessBuilder builder =
                builder(List.of(checkout.resolve("deepep").toString(), "--version"));
        builder.environment().keySet().removeAll(Set.of("LC_ALL", "LC_CTYPE", "LANG"));
        builder.environment().put(variable, locale);
        return builder.start();
    }
}
