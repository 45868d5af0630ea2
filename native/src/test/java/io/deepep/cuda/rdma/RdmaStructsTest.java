package io.deepep.cuda.rdma;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.Programs;
import java.io.IOException;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The bindings' structures are those of rdma-core's headers. */
class RdmaStructsTest {
    private static final Path HEADERS = Path.of("/usr/include/infiniband/mlx5dv.h");

    @TempDir private Path folder;

    private static Object value(java.lang.reflect.Field constant) {
        try {
            return constant.get(null);
        } catch (IllegalAccessException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static List<RdmaStructs.Field> fields() {
        return Arrays.stream(RdmaStructs.class.getDeclaredFields())
                .filter(constant -> Modifier.isStatic(constant.getModifiers()))
                .map(RdmaStructsTest::value)
                .filter(RdmaStructs.Field.class::isInstance)
                .map(RdmaStructs.Field.class::cast)
                .toList();
    }

    @Test
    void structuresAreThoseOfTheHeaders() throws IOException, InterruptedException {
        Assumptions.assumeTrue(Files.exists(HEADERS), "no libibverbs-dev: " + HEADERS);
        List<RdmaStructs.Field> fields = fields();
        assertThat(fields).hasSizeGreaterThan(30);
        Map<String, Long> sizes =
                Map.of(
                        "ibv_device_attr", RdmaStructs.DEVICE_ATTR_BYTES,
                        "ibv_ah_attr", RdmaStructs.AH_ATTR_BYTES,
                        "mlx5dv_obj", RdmaStructs.OBJECT_BYTES,
                        "mlx5dv_pd", RdmaStructs.OBJECT_OUT_BYTES,
                        "mlx5dv_ah", RdmaStructs.OBJECT_OUT_BYTES,
                        "mlx5dv_devx_umem_in", RdmaStructs.UMEM_IN_BYTES);
        String asserts =
                fields.stream()
                                .map(
                                        f ->
                                                "static_assert(offsetof(%1$s, %2$s) == %3$d && sizeof(((%1$s*)0)->%2$s) == %4$d);"
                                                        .formatted(
                                                                f.struct(),
                                                                f.name(),
                                                                f.at(),
                                                                f.numBytes()))
                                .collect(Collectors.joining("\n"))
                        + "static_assert(sizeof(ibv_port_attr) >= %d);\n"
                                .formatted(RdmaStructs.PORT_ATTR_BYTES)
                        + sizes.entrySet().stream()
                                .map(
                                        e ->
                                                "static_assert(sizeof(%s) == %d);\n"
                                                        .formatted(e.getKey(), e.getValue()))
                                .collect(Collectors.joining());
        Path source = folder.resolve("structs.cpp");
        Files.writeString(
                source,
                "#include <cstddef>\n#include <infiniband/mlx5dv.h>\n#include <infiniband/verbs.h>\n"
                        + asserts);
        Programs.run("g++", "-std=c++17", "-fsyntax-only", source.toString()).requireSuccess();
    }
}
