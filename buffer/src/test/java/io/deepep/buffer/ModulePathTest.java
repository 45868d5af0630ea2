package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.Programs;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * An engine that is a named module: it needs {@code io.deepep} alone, the implementation is found,
 * and what is not for engines cannot be reached.
 */
@Timeout(120)
@Tag("checkout")
@Execution(ExecutionMode.CONCURRENT) // its cases are other processes
class ModulePathTest {
    private static final String MODULE = "module engine { requires io.deepep; }";

    private static final String ENGINE =
            """
            package engine;

            import io.deepep.*;
            import io.deepep.observe.BufferObserver;
            import java.lang.foreign.Arena;

            public class Engine {
                public static void main(String[] args) throws Exception {
                    BufferObserver observer = call -> call.facts().numTokens();
                    try (var group = InProcessGroup.of(2)) {
                        group.run(communicator -> exchange(communicator, observer));
                    }
                }

                static void exchange(Communicator communicator, BufferObserver observer) {
                    var limits = NormalLimits.of(4, 128, 1, 2);
                    try (var buffer =
                            Buffer.builder(communicator).normal(limits).observer(observer).open()) {
                        var x = Tensor.allocate(Arena.ofAuto(), DType.BF16, 4, 128);
                        var idx = Tensor.allocate(Arena.ofAuto(), DType.I64, 4, 1);
                        x.setFloat(3, 2, 1);
                        var plan = DispatchPlan.builder(x).topk(idx, null, 2).build();
                        var received = buffer.dispatch(plan);
                        var combined =
                                buffer.combine(
                                        CombinePlan.builder(
                                                        received.recvX(), received.handle())
                                                .build());
                        System.out.print("got " + combined.x().getFloat(2, 1) + " ");
                    }
                }
            }
            """;

    @TempDir private Path folder;

    /** The library's modules among what this test runs with, and what they need. */
    private static String libraryPath() {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(
                        entry ->
                                ModuleFinder.of(Path.of(entry)).findAll().stream()
                                        .anyMatch(ModulePathTest::isOurs))
                .collect(Collectors.joining(File.pathSeparator));
    }

    private static boolean isOurs(ModuleReference found) {
        String name = found.descriptor().name();
        return name.equals("org.jgroups")
                || (name.startsWith("io.deepep") && !found.descriptor().isAutomatic());
    }

    private static String run(String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(Programs.jvm());
        command.addAll(List.of(arguments));
        return Programs.run(new ProcessBuilder(command)).output().strip();
    }

    /** Runs statements that are of no module, with the library's modules at hand. */
    private String runProbe(String statements, String... options)
            throws IOException, InterruptedException {
        Path probe =
                Files.writeString(
                        folder.resolve("Probe.java"),
                        "class Probe { public static void main(String[] args) { %s } }"
                                .formatted(statements));
        List<String> arguments = new ArrayList<>(List.of(options));
        arguments.addAll(List.of("--module-path", libraryPath(), probe.toString()));
        return run(arguments.toArray(String[]::new));
    }

    private String compile(String source) throws IOException {
        Path sources = Files.createDirectories(folder.resolve("sources"));
        Files.writeString(sources.resolve("module-info.java"), MODULE);
        Files.writeString(sources.resolve("Engine.java"), source);
        StringWriter messages = new StringWriter();
        ToolProvider.findFirst("javac")
                .orElseThrow()
                .run(
                        new PrintWriter(messages),
                        new PrintWriter(messages),
                        "-XDrawDiagnostics", // the same in any language
                        "--module-path",
                        libraryPath(),
                        "-d",
                        folder.resolve("engine").toString(),
                        sources.resolve("module-info.java").toString(),
                        sources.resolve("Engine.java").toString());
        return messages.toString().strip();
    }

    private String engineAndLibrary() {
        return libraryPath() + File.pathSeparator + folder.resolve("engine");
    }

    @Test
    void anEngineNeedsTheApiAloneAndSeesNoWarnings() throws IOException, InterruptedException {
        assertThat(compile(ENGINE)).isEmpty();
        String output =
                run(
                        "--enable-native-access=io.deepep,io.deepep.host,io.deepep.cuda",
                        "--module-path=" + engineAndLibrary(),
                        "--module=engine/engine.Engine");
        assertThat(output).isEqualTo("got 3.0 got 3.0");
    }

    /** As an image of jlink, which takes what is required, but not what provides services. */
    @Test
    void whoHasTheApiAloneIsToldWhatJlinkNeeds() throws IOException, InterruptedException {
        assertThat(compile(ENGINE)).isEmpty();
        String output =
                run(
                        "--limit-modules=engine",
                        "--module-path=" + engineAndLibrary(),
                        "--module=engine/engine.Engine");
        assertThat(output)
                .contains("no implementation of io.deepep.spi.BufferProvider was found; ")
                .contains("jlink needs --add-modules io.deepep.library");
    }

    /** JGroups is no named module, so the library would not bring it either. */
    @Test
    void whoLacksTheCommunicatorIsNotSentToTheLibrary() throws IOException, InterruptedException {
        assertThat(
                        runProbe(
                                "io.deepep.Communicator.fromEnvironment(java.time.Duration.ZERO);",
                                "--limit-modules=io.deepep,jdk.compiler",
                                "--add-modules=io.deepep"))
                .contains("add the artifact io.deepep:deepep-communicator ")
                .contains("jlink cannot include it, use the class path")
                .doesNotContain("io.deepep.library");
    }

    @Test
    void whoseRuntimeHasNoFlightRecorderIsToldTheModule() throws IOException, InterruptedException {
        assertThat(compile(ENGINE)).isEmpty();
        String output =
                run("--limit-modules=java.base", "-cp", engineAndLibrary(), "engine.Engine");
        assertThat(output)
                .contains(
                        "this Java runtime has no flight recorder (jdk/jfr/Event); make it with ");
    }

    /** That of the class path would not help. */
    @Test
    void whoLacksNativeAccessIsToldTheOptionForModules() throws IOException, InterruptedException {
        String denied = "native access is denied to module io.deepep.cuda";
        assertThat(
                        runProbe(
                                """
                                System.out.println(io.deepep.Device.numCudaDevices());
                                System.out.println(io.deepep.cuda.rdma.RdmaDevice.unavailabilityReason().get());
                                System.out.print(io.deepep.cuda.driver.CuLibrary.failure().get());
                                """,
                                "--illegal-native-access=deny",
                                "--add-modules=io.deepep.cuda",
                                "--add-exports=io.deepep.cuda/io.deepep.cuda.driver=ALL-UNNAMED",
                                "--add-exports=io.deepep.cuda/io.deepep.cuda.rdma=ALL-UNNAMED"))
                .isEqualToIgnoringNewLines(
                        "0"
                                + denied
                                + "io.deepep.error.DeepEpUnavailableException: "
                                + denied
                                + "; start Java with --enable-native-access=io.deepep,io.deepep.host,io.deepep.cuda");
    }

    /** Modules of a release have none; it comes in an artifact of its own. */
    @Test
    void deviceCodeIsFoundOnTheClassPath() throws IOException, InterruptedException {
        Path code = folder.resolve("code/io/deepep/normal/nvshmem");
        Files.createDirectories(code);
        Files.writeString(code.resolve("internode_dispatch_nvshmem.fatbin"), "");
        assertThat(
                        runProbe(
                                "System.out.print(io.deepep.normal.cuda.kernels.CallKernels.areBuiltForLibrary());",
                                "--add-modules=io.deepep.normal",
                                "--add-exports=io.deepep.normal/io.deepep.normal.cuda.kernels=ALL-UNNAMED",
                                "-cp",
                                folder.resolve("code").toString()))
                .endsWith("true");
    }

    @Test
    void internalsAreOutOfReach() throws IOException {
        String output =
                compile(
                        """
                        package engine;

                        class Engine {
                            io.deepep.spi.Layout layout;
                            io.deepep.host.HostStream stream;
                            io.deepep.cuda.CudaStream cuda;
                            io.deepep.normal.NormalKernels kernels;
                            io.deepep.buffer.RankBufferProvider provider;
                        }
                        """);
        for (String inside : List.of("spi", "host", "cuda", "normal", "buffer")) {
            assertThat(output).contains("compiler.err.package.not.visible: io.deepep." + inside);
        }
    }
}
