package io.deepep.bench.launch;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.List;
import java.util.Map;

/**
 * The variables that tell each process which rank it is, and all of them where to meet.
 *
 * @param size number of ranks
 * @param port where rank 0 will listen on the loopback address
 * @param secretFile with the secret of this launch
 */
record RankVariables(int size, int port, Path secretFile) {
    /** Below the ports that the system gives to connections of its choice. */
    private static final int FIRST_PORT = 20_000;

    private static final int LAST_PORT = 32_767;
    private static final int ATTEMPTS = 100;

    /** Those of an outer launcher that would contradict ours. */
    private static final List<String> FOREIGN =
            List.of(
                    "OMPI_COMM_WORLD_RANK",
                    "OMPI_COMM_WORLD_SIZE",
                    "PMI_RANK",
                    "PMI_SIZE",
                    "TORCHELASTIC_USE_AGENT_STORE",
                    "DEEPEP_MASTER_PORT",
                    "DEEPEP_SECRET");

    /** For a launch of {@code size} ranks, with a port that is free. */
    static RankVariables create(int size, Path secretFile) {
        return new RankVariables(size, freePort(new SecureRandom()), secretFile);
    }

    private static int freePort(SecureRandom random) {
        IOException last = null;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            int port = random.nextInt(FIRST_PORT, LAST_PORT + 1);
            try (ServerSocket probe = new ServerSocket()) {
                probe.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                return port;
            } catch (IOException taken) {
                last = taken;
            }
        }
        throw new UncheckedIOException("no free port on the loopback address", last);
    }

    /** Writes the variables of {@code rank} into the environment of its process. */
    void writeTo(Map<String, String> environment, int rank) {
        FOREIGN.forEach(environment::remove);
        environment.put("RANK", Integer.toString(rank));
        environment.put("WORLD_SIZE", Integer.toString(size));
        environment.put("LOCAL_RANK", Integer.toString(rank));
        environment.put("LOCAL_WORLD_SIZE", Integer.toString(size));
        environment.put("MASTER_ADDR", "127.0.0.1");
        environment.put("MASTER_PORT", Integer.toString(port));
        environment.put("DEEPEP_SECRET_FILE", secretFile.toString());
    }
}
