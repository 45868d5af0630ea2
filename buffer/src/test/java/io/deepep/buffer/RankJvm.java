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
record RankJvm(int rank, int numRanks, int port) {
    /** How to start {@code program}. */
    ProcessBuilder of(Class<?> program, String... arguments) {
        List<String> options = new ArrayList<>(Programs.SHORT_LIVED);
        options.addAll(List.of("-Xmx512m", "-Ddeepep.sysfs=" + HostTopology.SYSFS));
        String transport = System.getProperty("deepep.transport"); // of TestNetworks
        if (transport != null) {
            options.add("-Ddeepep.transport=" + transport);
        }
        ProcessBuilder builder = Programs.java(program, options, arguments);
        builder.environment().putAll(environment());
        return builder;
    }

    /** The launcher's variables. */
    Map<String, String> environment() {
        return Map.of(
                "RANK", Integer.toString(rank),
                "WORLD_SIZE", Integer.toString(numRanks),
                "LOCAL_RANK", Integer.toString(rank),
                "LOCAL_WORLD_SIZE", Integer.toString(numRanks),
                "MASTER_ADDR", "127.0.0.1",
                "MASTER_PORT", Integer.toString(port));
    }
}
