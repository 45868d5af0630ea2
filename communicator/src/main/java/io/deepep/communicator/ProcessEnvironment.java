package io.deepep.communicator;

import java.util.Map;

/**
 * Who this process is in its group and where the group meets.
 *
 * @param rank 0 to {@code size - 1}
 * @param size number of ranks, 1 to 65535
 * @param localRank the number of this rank among those on its host, from 0: its GPU
 * @param masterAddress host name or address where rank 0 listens
 * @param masterPort port where rank 0 listens, 1 to 65535
 * @param secret what all ranks know and strangers do not: at least 16 characters, or empty, which
 *     is allowed only if {@code masterAddress} is a loopback address
 */
public record ProcessEnvironment(
        int rank, int size, int localRank, String masterAddress, int masterPort, String secret) {
    private static final int MIN_SECRET_LENGTH = 16;

    /** Checks the ranges. */
    public ProcessEnvironment {
        if (size < 1 || size > RankAddress.MAX_SIZE) {
            throw new IllegalArgumentException(
                    "size=" + size + " (WORLD_SIZE) is not between 1 and " + RankAddress.MAX_SIZE);
        }
        if (rank < 0 || rank >= size) {
            throw new IllegalArgumentException(
                    "rank="
                            + rank
                            + " (RANK) is not between 0 and "
                            + (size - 1)
                            + ", size="
                            + size);
        }
        if (localRank < 0 || localRank >= size) {
            throw new IllegalArgumentException(
                    "localRank="
                            + localRank
                            + " (LOCAL_RANK) is not between 0 and "
                            + (size - 1)
                            + ", size="
                            + size);
        }
        if (masterAddress.isBlank()) {
            throw new IllegalArgumentException(
                    "masterAddress (MASTER_ADDR) is empty; set it to the host of rank 0");
        }
        if (masterPort < 1 || masterPort > 0xFFFF) {
            throw new IllegalArgumentException(
                    "masterPort=" + masterPort + " (MASTER_PORT) is not between 1 and 65535");
        }
        if (!secret.isEmpty() && secret.length() < MIN_SECRET_LENGTH) {
            throw new IllegalArgumentException(
                    "secret (DEEPEP_SECRET) has "
                            + secret.length()
                            + " characters, at least "
                            + MIN_SECRET_LENGTH
                            + " are needed; make one by openssl rand -hex 32");
        }
    }

    /**
     * Reads the variables that a launcher set, looked for in this order: torchrun and {@code deepep
     * launch} ({@code RANK}, {@code WORLD_SIZE}, {@code LOCAL_RANK}), Open MPI ({@code
     * OMPI_COMM_WORLD_...}), PMI ({@code PMI_RANK}, {@code PMI_SIZE}), srun ({@code SLURM_PROCID},
     * {@code SLURM_NTASKS}, {@code SLURM_LOCALID}).
     *
     * <p>The group meets at {@code MASTER_ADDR} (with srun otherwise at {@code
     * SLURM_LAUNCH_NODE_IPADDR}) and {@code MASTER_PORT}. {@code DEEPEP_MASTER_PORT} goes before
     * {@code MASTER_PORT}; where torchrun's agent listens at the latter itself, the port is one
     * higher. The secret is {@code DEEPEP_SECRET}.
     *
     * @param variables as of {@link System#getenv()}
     * @throws IllegalArgumentException if variables are missing or contradict each other
     */
    public static ProcessEnvironment from(Map<String, String> variables) {
        return new LauncherVariables(variables).read();
    }

    /** Everything but the secret. */
    @Override
    public String toString() {
        return "rank "
                + rank
                + " of "
                + size
                + " (local "
                + localRank
                + ") at "
                + masterAddress
                + ":"
                + masterPort;
    }
}
