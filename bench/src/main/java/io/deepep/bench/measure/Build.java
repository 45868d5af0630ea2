package io.deepep.bench.measure;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/**
 * What ran: part of every record, so that a figure can be traced.
 *
 * @param version of the library
 * @param commit of the sources that were built, with {@code -dirty} if they had changes; {@code
 *     unknown} if they were not built in a checkout of git
 * @param jvm name and version
 * @param cpu model and number of processors
 */
public record Build(String version, String commit, String jvm, String cpu) {
    private static final String UNKNOWN = "unknown";
    private static final String BUILD_PROPERTIES = "/io/deepep/bench/build.properties";
    private static final Path CPUINFO = Path.of("/proc/cpuinfo");

    /** This process. */
    public static Build current() {
        Properties built = buildProperties();
        String version = built.getProperty("version", implementationVersion());
        return new Build(
                version,
                built.getProperty("commit", UNKNOWN),
                System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version"),
                cpuModel() + ", " + Runtime.getRuntime().availableProcessors() + " processors");
    }

    private static Properties buildProperties() {
        Properties properties = new Properties();
        try (InputStream in = Build.class.getResourceAsStream(BUILD_PROPERTIES)) {
            if (in != null) {
                properties.load(in);
            }
        } catch (IOException unreadable) {
            throw new IllegalStateException("cannot read " + BUILD_PROPERTIES, unreadable);
        }
        return properties;
    }

    private static String implementationVersion() {
        String version = Build.class.getPackage().getImplementationVersion();
        return version == null ? "development build" : version;
    }

    private static String cpuModel() {
        try (var lines = Files.lines(CPUINFO)) {
            return lines.filter(line -> line.startsWith("model name"))
                    .map(line -> line.substring(line.indexOf(':') + 1).strip())
                    .findFirst()
                    .orElse(System.getProperty("os.arch"));
        } catch (IOException noProc) {
            return System.getProperty("os.arch");
        }
    }
}
