package io.deepep.bench.measure;

import io.deepep.doctor.HostFacts;
import io.deepep.doctor.Machine;
import java.io.IOException;
import java.io.InputStream;
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

    /** This process. */
    public static Build current() {
        Properties built = buildProperties();
        String version = built.getProperty("version", implementationVersion());
        HostFacts host = HostFacts.of(Machine.current(), version);
        return new Build(version, built.getProperty("commit", UNKNOWN), host.jvm(), host.cpu());
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
}
