package io.deepep.bench;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackages;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameStartingWith;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static io.deepep.bench.docs.Checkout.ROOT;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Holds the module graph, by packages, and that no test class has a name that is never run. */
@Tag("checkout")
class ArchitectureTest {
    private static final String[] TEST_LIBRARIES = {
        "org.junit..", "org.opentest4j..", "org.assertj..", "net.jqwik.."
    };
    private static final Set<String> TEST_ANNOTATIONS =
            Set.of(
                    "org.junit.jupiter.api.Test",
                    "org.junit.jupiter.api.RepeatedTest",
                    "org.junit.jupiter.api.TestFactory",
                    "org.junit.jupiter.api.TestTemplate",
                    "org.junit.jupiter.params.ParameterizedTest",
                    "net.jqwik.api.Property",
                    "net.jqwik.api.Example");

    private static final String NVSHMEM = "io.deepep.cuda.nvshmem.Nvshmem";

    /** Names of the tests that surefire runs. */
    private static final Pattern RUN_NAME = Pattern.compile(".*(?:Test|Properties|Conformance)");

    private static final JavaClasses MAIN = importFolders("classes");

    private static final String VECTORS = "jdk.incubator.vector..";

    /** A module: its packages, the modules below it, the libraries that it may use besides Java. */
    @SuppressWarnings("ImmutableEnumChecker") // of List.of
    enum Module {
        API(
                List.of("io.deepep", "io.deepep.error..", "io.deepep.observe..", "io.deepep.spi.."),
                List.of()),
        COMMUNICATOR("io.deepep.communicator..", List.of(API), "javax.crypto..", "org.jgroups.."),
        HOST("io.deepep.host..", List.of(API), VECTORS),
        NATIVE("io.deepep.cuda..", List.of(API)),
        NORMAL("io.deepep.normal..", List.of(API, HOST, NATIVE), VECTORS),
        LOW_LATENCY("io.deepep.lowlatency..", List.of(API, HOST, NATIVE), VECTORS),
        BUFFER("io.deepep.buffer..", List.of(API, HOST, NATIVE, NORMAL, LOW_LATENCY), "jdk.jfr.."),
        JCUDA("io.deepep.jcuda..", List.of(API), "jcuda.."),
        DJL(
                List.of("io.deepep.djl..", "ai.djl.serving.plugins.."),
                List.of(API),
                "ai.djl..",
                "com.google.gson..",
                "io.netty..",
                "javax.management.."),
        MICROMETER("io.deepep.micrometer..", List.of(API), "io.micrometer.."),
        TESTKIT("io.deepep.testkit..", List.of(API), TEST_LIBRARIES),
        PLANNER("io.deepep.planner..", List.of(API, NORMAL, LOW_LATENCY, BUFFER, TESTKIT)),
        DOCTOR("io.deepep.doctor..", List.of(API, NATIVE)),
        BENCH(
                "io.deepep.bench..",
                List.of(
                        API,
                        COMMUNICATOR,
                        HOST,
                        NATIVE,
                        NORMAL,
                        LOW_LATENCY,
                        BUFFER,
                        TESTKIT,
                        PLANNER,
                        DOCTOR),
                "com.fasterxml.jackson..",
                "com.sun.management..",
                "com.github.freva.asciitable..",
                "com.github.mustachejava..",
                "jdk.jfr..",
                "me.tongfei.progressbar..",
                "org.openjdk.jmh..",
                "picocli..");

        private final List<String> own;
        private final List<Module> below;
        private final List<String> libraries;

        Module(String own, List<Module> below, String... libraries) {
            this(List.of(own), below, libraries);
        }

        Module(List<String> own, List<Module> below, String... libraries) {
            this.own = own;
            this.below = below;
            this.libraries = List.of(libraries);
        }

        static String[] packages(Module... modules) {
            return Stream.of(modules).flatMap(module -> module.own.stream()).toArray(String[]::new);
        }

        String[] allowed() {
            return Stream.of(
                            Stream.of("java.."),
                            own.stream(),
                            below.stream().flatMap(module -> module.own.stream()),
                            libraries.stream())
                    .flatMap(names -> names)
                    .toArray(String[]::new);
        }
    }

    @ParameterizedTest
    @EnumSource
    void dependsOnModulesBelowAlone(Module module) {
        classes()
                .that(resideInAnyPackage(Module.packages(module)))
                .should()
                .onlyDependOnClassesThat(resideInAnyPackage(module.allowed()))
                .allowEmptyShould(true) // a build of some modules leaves the others out
                .check(MAIN);
    }

    @Test
    void everyPackageBelongsToAModule() {
        classes().should().resideInAnyPackage(Module.packages(Module.values())).check(MAIN);
    }

    @ParameterizedTest
    @ValueSource(strings = {"io.deepep.normal", "io.deepep.lowlatency"})
    void backendsOfAProtocolDoNotMeet(String protocol) {
        String host = protocol + ".host..";
        String cuda = protocol + ".cuda..";
        noClasses()
                .that(resideInAnyPackage(protocol))
                .should()
                .dependOnClassesThat(resideInAnyPackage(host, cuda))
                .check(MAIN);
        noClasses()
                .that(resideInAnyPackage(host))
                .should()
                .dependOnClassesThat(resideInAnyPackage(cuda, "io.deepep.cuda.."))
                .check(MAIN);
        noClasses()
                .that(resideInAnyPackage(cuda))
                .should()
                .dependOnClassesThat(resideInAnyPackage(host, "io.deepep.host.."))
                .allowEmptyShould(true) // a protocol may have no CUDA kernels yet
                .check(MAIN);
    }

    /** Which NVSHMEM there is, and by what it can send, is for all to ask. */
    @Test
    void nvshmemNumbersStayInTheRuntime() {
        noClasses()
                .that(resideOutsideOfPackages("io.deepep.cuda..", "io.deepep.buffer.."))
                .should()
                .dependOnClassesThat(
                        resideInAnyPackage("io.deepep.cuda.nvshmem..")
                                .and(not(nameStartingWith(NVSHMEM + "Installation")))
                                .and(not(nameStartingWith(NVSHMEM + "Transport")))
                                .and(not(nameStartingWith(NVSHMEM + "Version"))))
                .check(MAIN);
    }

    /** The command runs the oracle where there is no JUnit. */
    @Test
    void oracleNeedsNoTestLibrary() {
        noClasses()
                .that(
                        resideInAnyPackage(
                                "io.deepep.testkit.exchange..",
                                "io.deepep.testkit.oracle..",
                                "io.deepep.testkit.routing.."))
                .should()
                .dependOnClassesThat(resideInAnyPackage(TEST_LIBRARIES))
                .check(MAIN);
    }

    /**
     * Surefire runs *Test and *Properties, and in buffer/ the suites of testkit/, *Conformance; a
     * suite of another name would pass by never running.
     */
    @Test
    void everyTestClassHasANameThatIsRun() {
        List<String> neverRun =
                importFolders("classes", "test-classes").stream()
                        .filter(JavaClass::isTopLevelClass)
                        .filter(type -> !type.getModifiers().contains(JavaModifier.ABSTRACT))
                        .filter(ArchitectureTest::hasTests)
                        .map(JavaClass::getName)
                        .filter(name -> !RUN_NAME.matcher(name).matches())
                        .toList();
        assertThat(neverRun).as("test classes whose names surefire does not match").isEmpty();
    }

    private static boolean hasTests(JavaClass type) {
        return type.getAllMethods().stream()
                .flatMap(method -> method.getAnnotations().stream())
                .anyMatch(
                        annotation -> TEST_ANNOTATIONS.contains(annotation.getRawType().getName()));
    }

    /**
     * The class files of every module that has been built: target/classes or target/test-classes.
     */
    private static JavaClasses importFolders(String... names) {
        try (Stream<Path> modules = Files.list(ROOT)) {
            List<Path> folders =
                    modules.map(module -> module.resolve("target"))
                            .flatMap(target -> Stream.of(names).map(target::resolve))
                            .filter(Files::isDirectory)
                            .toList();
            // A dependency's name is all that the rules ask of classes outside of the project.
            ArchConfiguration.get().setResolveMissingDependenciesFromClassPath(false);
            return new ClassFileImporter().importPaths(folders);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }
}
