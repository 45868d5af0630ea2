package io.deepep.communicator;

import java.time.Duration;
import java.util.Map;

/**
 * Who this process is in its group and where the group meets.
 *
 * @param rank 0 to {@code size - 1}
 * @param size number of ranks, 1 to 65535
 * @param localRank the number of this rank among those on its host, from 0: its GPU
 * @param localSize number of ranks on its host
 * @param masterAddress host name or address where rank 0 listens
 * @param masterPort port where rank 0 listens, 1 to 65535
 * @param secret what all ranks know and strangers do not: at least 16 characters
 * @param failureTimeout how long a rank may be silent before the others take it for dead, at least
 *     a second; a process that ends is noticed at once
 */
public record ProcessEnvironment(
        int rank,
        int size,
        int localRank,
        int localSize,
        String masterAddress,
        int masterPort,
        String secret,
        Duration failureTimeout) {
    /** How long a rank may be silent unless {@code DEEPEP_FAILURE_SECONDS} says otherwise. */
    public static final Duration DEFAULT_FAILURE_TIMEOUT = Duration.ofSeconds(15);

    private static final int MIN_SECRET_LENGTH = 16;

    /** Checks the ranges. */
    public ProcessEnvironment {
        if (size < 1 || size > RankAddress.MAX_SIZE) {
            throw new IllegalArgumentException(
                    "size=" + size + " (WORLD_SIZE) is not between 1 and " + RankAddress.MAX_SIZE);
        }
        if (rank < 0 || rank >= size) {
            throw new IllegalArgumentException(
                    "rank=%s (RANK) is not between 0 and %s, size=%s"
                            .formatted(rank, size - 1, size));
        }
        if (localSize < 1 || localSize > size) {
            throw new IllegalArgumentException(
                    "localSize=%s (LOCAL_WORLD_SIZE) is not between 1 and size=%s"
                            .formatted(localSize, size));
        }
        if (localRank < 0 || localRank >= localSize) {
            throw new IllegalArgumentException(
                    "localRank=%s (LOCAL_RANK) is not between 0 and %s, localSize=%s"
                            .formatted(localRank, localSize - 1, localSize));
        }
        if (masterAddress.isBlank()) {
            throw new IllegalArgumentException(
                    "masterAddress (MASTER_ADDR) is empty; set it to the host of rank 0");
        }
        if (masterPort < 1 || masterPort > 0xFFFF) {
            throw new IllegalArgumentException(
                    "masterPort=" + masterPort + " (MASTER_PORT) is not between 1 and 65535");
        }
        if (secret.length() < MIN_SECRET_LENGTH) {
            throw new IllegalArgumentException(
                    "secret (DEEPEP_SECRET) "
                            + (secret.isEmpty()
                                    ? "is empty"
                                    : "has " + secret.length() + " characters")
                            + ", at least "
                            + MIN_SECRET_LENGTH
                            + " characters are needed"
                            + SecretFile.CURE);
        }
        if (failureTimeout.compareTo(Duration.ofSeconds(1)) < 0) {
            throw new IllegalArgumentException(
                    "failureTimeout="
                            + failureTimeout
                            + " (DEEPEP_FAILURE_SECONDS) is less than a second");
        }
    }

    /**
     * Reads the variables that a launcher set. Launchers are looked for in this order, because the
     * later ones are also found around the earlier:
     *
     * <pre>
     *  launcher                 rank                  size                  local rank and size
     *  torchrun, deepep launch  RANK                  WORLD_SIZE            LOCAL_RANK, LOCAL_WORLD_SIZE
     *  mpirun of Open MPI       OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_SIZE  OMPI_COMM_WORLD_LOCAL_RANK, ..._SIZE
     *  others with PMI          PMI_RANK              PMI_SIZE              MPI_LOCALRANKID, MPI_LOCALNRANKS
     *  srun                     SLURM_PROCID          SLURM_NTASKS          SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE
     * </pre>
     *
     * <p>The group meets at {@code MASTER_ADDR} (with srun otherwise at the first host of {@code
     * SLURM_STEP_NODELIST}) and {@code MASTER_PORT}. {@code DEEPEP_MASTER_PORT} goes before {@code
     * MASTER_PORT}; where torchrun's agent listens at the latter itself, the port is one higher.
     * {@code DEEPEP_FAILURE_SECONDS} is how long a rank may be silent.
     *
     * <p>The secret is the content of {@code DEEPEP_SECRET_FILE}, which only this user (or root)
     * may own and nobody else may read, or {@code DEEPEP_SECRET}. If neither is set and the group
     * meets at a loopback address, it is one of this user on this host, in {@code
     * deepep-UID/secret} of the folder for temporary files, made by the first process that needs
     * it.
     *
     * @param variables as of {@link System#getenv()}
     * @throws IllegalArgumentException if variables are missing or contradict each other
     */
    public static ProcessEnvironment from(Map<String, String> variables) {
        return new LauncherVariables(variables).read();
    }

    /**
     * Whether a launcher has given this process a rank at all.
     *
     * @param variables as of {@link System#getenv()}
     */
    public static boolean isRank(Map<String, String> variables) {
        return new LauncherVariables(variables).hasRank();
    }

    /** The same rank in another group, which meets at another port. */
    public ProcessEnvironment withMasterPort(int port) {
        return new ProcessEnvironment(
                rank, size, localRank, localSize, masterAddress, port, secret, failureTimeout);
    }

    /** Everything but the secret. */
    @Override
    public String toString() {
        return "rank %s of %s (local %s) at %s:%s"
                .formatted(rank, size, localRank, masterAddress, masterPort);
    }
}
