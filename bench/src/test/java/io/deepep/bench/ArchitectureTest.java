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
import org.junit.jupiter.params.provider.MethodSource;
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

    private static final List<String> VECTORS = List.of("jdk.incubator.vector..");

    private static final Module API =
            new Module(
                    List.of(
                            "io.deepep",
                            "io.deepep.error..",
                            "io.deepep.observe..",
                            "io.deepep.spi.."),
                    List.of(),
                    List.of());
    private static final Module COMMUNICATOR =
            new Module(
                    List.of("io.deepep.communicator.."),
                    List.of(API),
                    List.of("javax.crypto..", "org.jgroups.."));
    private static final Module HOST =
            new Module(List.of("io.deepep.host.."), List.of(API), VECTORS);
    private static final Module NATIVE =
            new Module(List.of("io.deepep.cuda.."), List.of(API), List.of());
    private static final Module NORMAL =
            new Module(List.of("io.deepep.normal.."), List.of(API, HOST, NATIVE), VECTORS);
    private static final Module LOW_LATENCY =
            new Module(List.of("io.deepep.lowlatency.."), List.of(API, HOST, NATIVE), VECTORS);
    private static final Module BUFFER =
            new Module(
                    List.of("io.deepep.buffer.."),
                    List.of(API, HOST, NATIVE, NORMAL, LOW_LATENCY),
                    List.of("jdk.jfr.."));
    private static final Module JCUDA =
            new Module(List.of("io.deepep.jcuda.."), List.of(API), List.of("jcuda.."));
    private static final Module DJL =
            new Module(
                    List.of("io.deepep.djl..", "ai.djl.serving.plugins.."),
                    List.of(API),
                    List.of("ai.djl..", "com.google.gson..", "io.netty..", "javax.management.."));
    private static final Module MICROMETER =
            new Module(List.of("io.deepep.micrometer.."), List.of(API), List.of("io.micrometer.."));
    private static final Module TESTKIT =
            new Module(List.of("io.deepep.testkit.."), List.of(API), List.of(TEST_LIBRARIES));
    private static final Module PLANNER =
            new Module(
                    List.of("io.deepep.planner.."),
                    List.of(API, NORMAL, LOW_LATENCY, BUFFER, TESTKIT),
                    List.of());
    private static final Module DOCTOR =
            new Module(List.of("io.deepep.doctor.."), List.of(API, NATIVE), List.of());
    private static final Module BENCH =
            new Module(
                    List.of("io.deepep.bench.."),
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
                    List.of(
                            "com.fasterxml.jackson..",
                            "com.sun.management..",
                            "com.github.freva.asciitable..",
                            "com.github.mustachejava..",
                            "jdk.jfr..",
                            "me.tongfei.progressbar..",
                            "org.openjdk.jmh..",
                            "picocli.."));

    /** A module: its packages, the modules below it, the libraries that it may use besides Java. */
    record Module(List<String> own, List<Module> below, List<String> libraries) {
        String[] allowed() {
            return Stream.of(
                            Stream.of("java.."),
                            own.stream(),
                            below.stream().flatMap(module -> module.own.stream()),
                            libraries.stream())
                    .flatMap(names -> names)
                    .toArray(String[]::new);
        }

        @Override
        public String toString() {
            return own.getFirst();
        }
    }

    static List<Module> modules() {
        return List.of(
                API,
                COMMUNICATOR,
                HOST,
                NATIVE,
                NORMAL,
                LOW_LATENCY,
                BUFFER,
                JCUDA,
                DJL,
                MICROMETER,
                TESTKIT,
                PLANNER,
                DOCTOR,
                BENCH);
    }

    @ParameterizedTest
    @MethodSource("modules")
    void dependsOnModulesBelowAlone(Module module) {
        classes()
                .that(resideInAnyPackage(module.own().toArray(String[]::new)))
                .should()
                .onlyDependOnClassesThat(resideInAnyPackage(module.allowed()))
                .allowEmptyShould(true) // a build of some modules leaves the others out
                .check(MAIN);
    }

    @Test
    void everyPackageBelongsToAModule() {
        String[] known =
                modules().stream().flatMap(module -> module.own().stream()).toArray(String[]::new);
        classes().should().resideInAnyPackage(known).check(MAIN);
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
