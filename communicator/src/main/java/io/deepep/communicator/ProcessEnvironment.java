package io.deepep.communicator;

import java.time.Duration;
import java.util.Map;

/**
 * The rank of this process in its group, and the address where the group meets.
 *
 * @param rank 0 to {@code size - 1}
 * @param size number of ranks, 1 to 65535
 * @param localRank the number of this rank among those on its host, 0 to {@code localSize - 1}
 * @param localSize number of ranks on its host
 * @param masterAddress host name or address at which rank 0 listens
 * @param masterPort port on which rank 0 listens, 1 to 65535
 * @param secret a secret that only the ranks of this group know, at least 16 characters
 * @param failureTimeout how long a rank may be silent before the others consider it dead, at least
 *     one second; the end of a process is noticed at once
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
    /** The {@code failureTimeout} if {@code DEEPEP_FAILURE_SECONDS} is not set. */
    public static final Duration DEFAULT_FAILURE_TIMEOUT = Duration.ofSeconds(15);

    private static final int MIN_SECRET_LENGTH = 16;

    /** Validates the values. */
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
                    "secret (DEEPEP_SECRET) %s, but at least %s characters are needed%s"
                            .formatted(
                                    secret.isEmpty()
                                            ? "is empty"
                                            : "has " + secret.length() + " characters",
                                    MIN_SECRET_LENGTH,
                                    SecretFile.CURE));
        }
        if (failureTimeout.compareTo(Duration.ofSeconds(1)) < 0) {
            throw new IllegalArgumentException(
                    "failureTimeout=%s (DEEPEP_FAILURE_SECONDS) must be at least 1 second"
                            .formatted(failureTimeout));
        }
    }

    /**
     * Reads the environment variables of a launcher. Launchers are looked for in this order,
     * because a later one may have started an earlier one:
     *
     * <pre>
     *  launcher                 rank                  size                  local rank and size
     *  torchrun, deepep launch  RANK                  WORLD_SIZE            LOCAL_RANK, LOCAL_WORLD_SIZE
     *  mpirun of Open MPI       OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_SIZE  OMPI_COMM_WORLD_LOCAL_RANK, ..._SIZE
     *  others with PMI          PMI_RANK              PMI_SIZE              MPI_LOCALRANKID, MPI_LOCALNRANKS
     *  srun                     SLURM_PROCID          SLURM_STEP_NUM_TASKS  SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE
     * </pre>
     *
     * <p>The group meets at {@code MASTER_ADDR} and {@code MASTER_PORT}. With srun, {@code
     * MASTER_ADDR} defaults to the first host of {@code SLURM_STEP_NODELIST}. {@code
     * DEEPEP_MASTER_PORT} takes precedence over {@code MASTER_PORT}; if torchrun's agent itself
     * listens on {@code MASTER_PORT}, the group uses the next port. {@code DEEPEP_FAILURE_SECONDS}
     * is how long a rank may be silent.
     *
     * <p>The secret is the content of {@code DEEPEP_SECRET_FILE}, or else {@code DEEPEP_SECRET}.
     * The file must belong to this user or root, and no other user may have access to it. If
     * neither variable is set and the group meets at a loopback address, the secret is that of this
     * user on this host, in {@code deepep-UID/secret} of the folder for temporary files; the first
     * process that needs it creates it.
     *
     * @param variables environment variables, as from {@link System#getenv()}
     * @throws IllegalArgumentException if variables are missing or contradict each other
     */
    public static ProcessEnvironment from(Map<String, String> variables) {
        return new LauncherVariables(variables).read();
    }

    /**
     * Whether a launcher started this process among others. The only task of a step of Slurm, as an
     * interactive shell is, and a batch script are alone.
     *
     * @param variables environment variables, as from {@link System#getenv()}
     * @throws IllegalArgumentException if a size is not a number
     */
    public static boolean isAmongOthers(Map<String, String> variables) {
        return new LauncherVariables(variables).tellOfOthers();
    }

    /** A copy for another group, which meets on another port of the same address. */
    public ProcessEnvironment withMasterPort(int port) {
        return new ProcessEnvironment(
                rank, size, localRank, localSize, masterAddress, port, secret, failureTimeout);
    }

    /** A copy for another group, whose rank 0 is on another host. */
    public ProcessEnvironment withMasterAddress(String address) {
        return new ProcessEnvironment(
                rank, size, localRank, localSize, address, masterPort, secret, failureTimeout);
    }

    /** A description without the secret. */
    @Override
    public String toString() {
        return "rank %s of %s (local %s) at %s:%s"
                .formatted(rank, size, localRank, masterAddress, masterPort);
    }
}
