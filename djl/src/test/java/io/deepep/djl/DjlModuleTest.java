package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.lang.module.Configuration;
import java.lang.module.ModuleFinder;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The library as a named module. */
class DjlModuleTest {

    /** DJL logs to it as soon as an engine is looked for. */
    @Test
    void whoRequiresItGetsTheLoggerOfDjl() {
        Path[] modulePath =
                Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                        .filter(
                                entry ->
                                        !entry.contains(
                                                "pytorch-native")) // its name is no module's
                        .map(Path::of)
                        .toArray(Path[]::new);
        Configuration modules =
                ModuleLayer.boot()
                        .configuration()
                        .resolve(
                                ModuleFinder.of(modulePath),
                                ModuleFinder.of(),
                                Set.of("io.deepep.djl"));
        assertThat(modules.findModule("org.slf4j")).isPresent();
        assertThat(modules.findModule("ai.djl.pytorch_engine")).isPresent();
    }
}
