package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.Programs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What build.sh makes of a compiler that is missing, is content, or reports spilled registers. */
@Timeout(60)
@Tag("checkout")
class DeviceCodeBuildTest {
    private static final Path SCRIPT = Path.of("src/main/cuda/build.sh").toAbsolutePath();

    /** Writes what nvcc would, and says of registers what the file PTXAS holds. */
    private static final String COMPILER =
            """
            #!/bin/sh
            [ "$1" = --version ] && { echo pretended; exit; }
            while [ $# -gt 0 ]; do
                case $1 in
                    -MMD,-MF,*) list=${1##*,} ;;
                    -o) output=$2; shift ;;
                    -gencode) target=$2; shift ;;
                    *.cu) source=$1 ;;
                esac
                shift
            done
            echo "$output: $source" >"$list"
            cp "$source" "$output"
            echo "$target" >"$source.target"
            cat "$(dirname "$0")/PTXAS"
            """;

    @TempDir private Path module;
    private Path compiler;
    private Path fatbin;

    @BeforeEach
    void writeModule() throws IOException {
        Path sources = Files.createDirectories(module.resolve("src/main/cuda"));
        Files.writeString(sources.resolve("copy.cu"), "one");
        compiler = program("nvcc", COMPILER);
        fatbin = module.resolve("out/copy.fatbin");
        spill(0);
    }

    /** One that the script finds before the system's. */
    private Path program(String name, String text) throws IOException {
        Path file = Files.writeString(module.resolve(name), text);
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    private void spill(int bytes) throws IOException {
        Files.writeString(
                module.resolve("PTXAS"),
                "ptxas info : 0 bytes stack frame, " + bytes + " bytes spill stores\n");
    }

    private Programs.Ended build(String nvcc) throws Exception {
        return build(nvcc, "90,100");
    }

    private Programs.Ended build(String nvcc, String sass) throws Exception {
        return Programs.run(
                "env",
                "PATH=" + module + ":" + System.getenv("PATH"),
                "bash",
                SCRIPT.toString(),
                module.resolve("src/main/cuda").toString(),
                module.resolve("out").toString(),
                module.resolve("work").toString(),
                nvcc,
                sass);
    }

    /** Has this machine GPUs of these compute capabilities. */
    private void haveGpus(String... capabilities) throws IOException {
        String query = "#!/bin/sh\nprintf '" + String.join("\\n", capabilities) + "\\n'\n";
        program("nvidia-smi", query);
    }

    private String target(String name) throws IOException {
        return Files.readString(module.resolve("src/main/cuda/" + name + ".cu.target")).strip();
    }

    @Test
    void withoutCompilerTheBuildGoesOnAndSaysSo() throws Exception {
        assertThat(build("none").requireSuccess())
                .contains("device code not compiled (-Dnvcc=none)");
        assertThat(fatbin).doesNotExist();
    }

    /** As on macOS, where a first start without nvcc must not need more. */
    @Test
    void oldBashIsEnough() throws Exception {
        program(
                "bash",
                """
                #!/bin/sh
                exec /bin/bash -c 'enable -n mapfile readarray; . "$0"' "$@"
                """);
        assertThat(build("none").requireSuccess()).contains("device code not compiled");
    }

    @Test
    void aCompilerThatIsNamedMustBeThere() throws Exception {
        Programs.Ended outcome = build(module.resolve("missing").toString());
        assertThat(outcome.status()).isEqualTo(1);
        assertThat(outcome.output()).contains("missing is no program");
    }

    @Test
    void spilledRegistersAreAnError() throws Exception {
        spill(8);
        Programs.Ended outcome = build(compiler.toString());
        assertThat(outcome.status()).isEqualTo(1);
        assertThat(outcome.output()).contains("copy spills registers");
        assertThat(fatbin).doesNotExist();
    }

    /** For kernels that may spill, nothing is lost without: half of the compiling is theirs. */
    @Test
    void withoutAGpuOnlyCodeThatMustNotSpillIsCompiledToTheEnd() throws Exception {
        Files.writeString(module.resolve("src/main/cuda/copy_masked_all.cu"), "one");
        haveGpus();
        spill(8);
        assertThat(build(compiler.toString(), "local").status()).isEqualTo(1);
        spill(0);
        build(compiler.toString(), "local").requireSuccess();
        assertThat(target("copy")).isEqualTo("arch=compute_90,code=[sm_90,compute_90]");
        assertThat(target("copy_masked_all")).isEqualTo("arch=compute_90,code=[compute_90]");
        haveGpus("9.0", "10.0", "8.0");
        build(compiler.toString(), "local").requireSuccess();
        assertThat(target("copy")).isEqualTo("arch=compute_90,code=[sm_90,sm_100,compute_90]");
        assertThat(target("copy_masked_all")).isEqualTo(target("copy"));
    }

    @Test
    void onlyWhatChangedIsCompiled() throws Exception {
        assertThat(build(compiler.toString()).output()).contains("compiling 1 of 1 sources");
        assertThat(fatbin).hasContent("one");
        assertThat(build(compiler.toString())).isEqualTo(new Programs.Ended(0, ""));
        Files.writeString(module.resolve("src/main/cuda/copy.cu"), "two");
        build(compiler.toString()).requireSuccess();
        assertThat(fatbin).hasContent("two");
        Files.delete(module.resolve("src/main/cuda/copy.cu"));
        build(compiler.toString()).requireSuccess();
        assertThat(fatbin).doesNotExist();
    }

    /** It would be packaged with Java that it was not built with. */
    @Test
    void withoutCompilerOnlyWhatIsCurrentStays() throws Exception {
        build(compiler.toString()).requireSuccess();
        build("none").requireSuccess();
        assertThat(fatbin).hasContent("one");
        Files.writeString(module.resolve("src/main/cuda/copy.cu"), "two");
        build("none").requireSuccess();
        assertThat(fatbin).doesNotExist();
    }
}
