package io.deepep.buffer;

import io.deepep.cuda.topology.HostTopology;
import io.deepep.testkit.Programs;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The process of one rank, as a launcher starts it.
 *
 * @param port at which rank 0 listens
 */
public record RankJvm(int rank, int numRanks, int port) {
    /** How to start {@code program}. */
    public ProcessBuilder of(Class<?> program, String... arguments) {
        return of(List.of(), program, arguments);
    }

    /** The same with options of the JVM besides its own. */
    ProcessBuilder of(List<String> more, Class<?> program, String... arguments) {
        List<String> options = new ArrayList<>(more);
        options.addAll(Programs.SHORT_LIVED);
        options.addAll(List.of("-Xmx512m", "-Ddeepep.sysfs=" + HostTopology.SYSFS));
        String transport = System.getProperty("deepep.transport"); // of TestNetworks
        if (transport != null) {
            options.add("-Ddeepep.transport=" + transport);
        }
        ProcessBuilder builder = Programs.java(program, options, arguments);
        builder.environment()
                .putAll(
                        Map.of(
                                "RANK", Integer.toString(rank),
                                "WORLD_SIZE", Integer.toString(numRanks),
                                "LOCAL_RANK", Integer.toString(rank),
                                "LOCAL_WORLD_SIZE", Integer.toString(numRanks),
                                "MASTER_ADDR", "127.0.0.1",
                                "MASTER_PORT", Integer.toString(port)));
        return builder;
    }
}
