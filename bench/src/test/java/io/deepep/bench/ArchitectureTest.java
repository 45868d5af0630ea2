package io.deepep.bench;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackages;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchCondition;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Holds the module graph, by packages, and that no test class has a name that is never run. */
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

    private static final JavaClasses MAIN = importFolders("classes");

    /** A module: its packages, the modules below it, the libraries that it may use besides Java. */
    enum Module {
        API(packages("io.deepep", "io.deepep.error..", "io.deepep.spi.."), below(), packages()),
        COMMUNICATOR(
                packages("io.deepep.communicator.."),
                below(API),
                packages("javax.crypto..", "org.jgroups..")),
        HOST(packages("io.deepep.host.."), below(API), packages("jdk.incubator.vector..")),
        NATIVE(packages("io.deepep.cuda.."), below(API), packages()),
        NORMAL(
                packages("io.deepep.normal.."),
                below(API, HOST, NATIVE),
                packages("jdk.incubator.vector..")),
        LOW_LATENCY(
                packages("io.deepep.lowlatency.."),
                below(API, HOST, NATIVE),
                packages("jdk.incubator.vector..")),
        BUFFER(
                packages("io.deepep.buffer.."),
                below(API, COMMUNICATOR, HOST, NATIVE, NORMAL, LOW_LATENCY),
                packages()),
        TESTKIT(packages("io.deepep.testkit.."), below(API), TEST_LIBRARIES),
        BENCH(
                packages("io.deepep.bench.."),
                below(API, COMMUNICATOR, HOST, NATIVE, NORMAL, LOW_LATENCY, BUFFER, TESTKIT),
                packages(
                        "com.fasterxml.jackson..",
                        "com.github.freva.asciitable..",
                        "me.tongfei.progressbar..",
                        "org.openjdk.jmh..",
                        "picocli.."));

        private final String[] own;
        private final Module[] below;
        private final String[] libraries;

        Module(String[] own, Module[] below, String[] libraries) {
            this.own = own;
            this.below = below;
            this.libraries = libraries;
        }

        private String[] allowed() {
            Stream<String> modules = Arrays.stream(below).flatMap(module -> Stream.of(module.own));
            return Stream.of(Stream.of("java.."), Stream.of(own), modules, Stream.of(libraries))
                    .flatMap(names -> names)
                    .toArray(String[]::new);
        }

        private static String[] packages(String... names) {
            return names;
        }

        private static Module[] below(Module... modules) {
            return modules;
        }
    }

    @ParameterizedTest
    @EnumSource
    void dependsOnModulesBelowAlone(Module module) {
        classes()
                .that(resideInAnyPackage(module.own))
                .should()
                .onlyDependOnClassesThat(resideInAnyPackage(module.allowed()))
                .check(MAIN);
    }

    @Test
    void everyPackageBelongsToAModule() {
        String[] known =
                Stream.of(Module.values())
                        .flatMap(module -> Stream.of(module.own))
                        .toArray(String[]::new);
        noClasses().should(beIn(resideOutsideOfPackages(known))).check(MAIN);
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

    @Test
    void nvshmemNumbersStayInTheRuntime() {
        noClasses()
                .that(resideOutsideOfPackages("io.deepep.cuda..", "io.deepep.buffer.."))
                .should()
                .dependOnClassesThat(resideInAnyPackage("io.deepep.cuda.nvshmem.."))
                .check(MAIN);
    }

    /** The command runs the oracle where there is no JUnit. */
    @Test
    void oracleNeedsNoTestLibrary() {
        noClasses()
                .that(resideInAnyPackage("io.deepep.testkit.oracle..", "io.deepep.testkit.routing.."))
                .should()
                .dependOnClassesThat(resideInAnyPackage(TEST_LIBRARIES))
                .check(MAIN);
    }

    /** Surefire runs *Test and *Properties; a suite of another name would pass by never running. */
    @Test
    void everyTestClassHasANameThatIsRun() {
        List<String> neverRun =
                importFolders("test-classes").stream()
                        .filter(JavaClass::isTopLevelClass)
                        .filter(type -> !type.getModifiers().contains(JavaModifier.ABSTRACT))
                        .filter(ArchitectureTest::hasTests)
                        .map(JavaClass::getName)
                        .filter(name -> !name.endsWith("Test") && !name.endsWith("Properties"))
                        .toList();
        assertThat(neverRun).as("test classes whose names surefire does not match").isEmpty();
    }

    private static boolean hasTests(JavaClass type) {
        return type.getAllMethods().stream()
                .flatMap(method -> method.getAnnotations().stream())
                .anyMatch(annotation -> TEST_ANNOTATIONS.contains(annotation.getRawType().getName()));
    }

    private static ArchCondition<JavaClass> beIn(
            DescribedPredicate<JavaClass> place) {
        return ArchCondition.from(
                describe("be outside of the modules' packages", place::test));
    }

    /** The class files of every module that has been built: target/classes or target/test-classes. */
    private static JavaClasses importFolders(String name) {
        try {
            Path own =
                    Path.of(
                            ArchitectureTest.class
                                    .getProtectionDomain()
                                    .getCodeSource()
                                    .getLocation()
                                    .toURI());
            try (Stream<Path> modules = Files.list(own.resolve("../../..").normalize())) {
                List<Path> folders =
                        modules.map(module -> module.resolve("target").resolve(name))
                                .filter(Files::isDirectory)
                                .toList();
                return new ClassFileImporter().importPaths(folders);
            }
        } catch (IOException | URISyntaxException unreadable) {
            throw new IllegalStateException("the build's folders cannot be read", unreadable);
        }
    }
}
