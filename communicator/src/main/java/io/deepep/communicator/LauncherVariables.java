package io.deepep.communicator;

import java.util.List;
import java.util.Map;

/** Reads what launchers tell their processes. */
final class LauncherVariables {
    private static final String CURE =
            "; start the process by deepep launch, torchrun, mpirun or srun, or set RANK,"
                    + " WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT";

    /**
     * The names by which one kind of launcher says who a process is; several names of the local
     * rank are tried.
     */
    private record Family(String name, String rank, String size, List<String> localRank) {}

    private static final Family TORCHRUN =
            new Family("torchrun", "RANK", "WORLD_SIZE", List.of("LOCAL_RANK"));
    private static final Family OPEN_MPI =
            new Family(
                    "Open MPI",
                    "OMPI_COMM_WORLD_RANK",
                    "OMPI_COMM_WORLD_SIZE",
                    List.of("OMPI_COMM_WORLD_LOCAL_RANK"));
    private static final Family PMI =
            new Family(
                    "PMI",
                    "PMI_RANK",
                    "PMI_SIZE",
                    List.of("MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"));
    private static final Family SLURM =
            new Family("srun", "SLURM_PROCID", "SLURM_NTASKS", List.of("SLURM_LOCALID"));

    private final Map<String, String> variables;

    LauncherVariables(Map<String, String> variables) {
        this.variables = variables;
    }

    ProcessEnvironment read() {
        Family family = family();
        int rank = number(family.rank);
        int size = number(family.size);
        requireNoContradiction(family, rank, size);
        String address = masterAddress(family);
        return new ProcessEnvironment(
                rank,
                size,
                localRank(family, rank, address),
                address,
                masterPort(),
                variables.getOrDefault("DEEPEP_SECRET", ""));
    }

    /**
     * The most specific launcher comes first: mpirun and torchrun are themselves started in jobs of
     * Slurm.
     */
    private Family family() {
        for (Family family : List.of(TORCHRUN, OPEN_MPI, PMI, SLURM)) {
            boolean hasRank = has(family.rank);
            boolean hasSize = has(family.size);
            if (hasRank && hasSize) {
                return family;
            }
            // A job of Slurm sets SLURM_NTASKS also where nothing was started by srun.
            if (hasRank || (hasSize && !family.equals(SLURM))) {
                throw new IllegalArgumentException(
                        (hasRank ? family.rank : family.size)
                                + " is set, but "
                                + (hasRank ? family.size : family.rank)
                                + " is missing"
                                + CURE);
            }
        }
        throw new IllegalArgumentException(
                "this process has no rank: none of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID is set"
                        + CURE);
    }

    /**
     * RANK beside the variables of mpirun: both must say the same, unless torchrun was started once
     * for each host. Those of Slurm may differ: they are also set where srun starts another
     * launcher.
     */
    private void requireNoContradiction(Family used, int rank, int size) {
        if (used.equals(TORCHRUN) && has("TORCHELASTIC_RUN_ID")) {
            return;
        }
        for (Family other : List.of(OPEN_MPI, PMI)) {
            if (!other.equals(used) && has(other.rank) && has(other.size)) {
                requireSame(used.rank, rank, other.rank, number(other.rank));
                requireSame(used.size, size, other.size, number(other.size));
            }
        }
    }

    private static void requireSame(String name, int value, String otherName, int other) {
        if (value != other) {
            throw new IllegalArgumentException(
                    name
                            + "="
                            + value
                            + " contradicts "
                            + otherName
                            + "="
                            + other
                            + "; unset the one that is wrong");
        }
    }

    private String masterAddress(Family family) {
        if (has("MASTER_ADDR")) {
            return variables.get("MASTER_ADDR").strip();
        }
        if (family.equals(SLURM) && has("SLURM_LAUNCH_NODE_IPADDR")) {
            return variables.get("SLURM_LAUNCH_NODE_IPADDR").strip();
        }
        throw new IllegalArgumentException(
                "MASTER_ADDR is missing, which "
                        + family.name
                        + " does not set by itself; set it on all ranks to the host of rank 0"
                        + " (127.0.0.1 if there is only one host)");
    }

    private int masterPort() {
        if (has("DEEPEP_MASTER_PORT")) {
            return number("DEEPEP_MASTER_PORT");
        }
        if (!has("MASTER_PORT")) {
            throw new IllegalArgumentException(
                    "MASTER_PORT is missing; set it on all ranks to the same port, free on the host of rank 0");
        }
        // torchrun's agent listens at MASTER_PORT itself, for a store that its workers share.
        boolean taken = "True".equalsIgnoreCase(variables.get("TORCHELASTIC_USE_AGENT_STORE"));
        return number("MASTER_PORT") + (taken ? 1 : 0);
    }

    private int localRank(Family family, int rank, String address) {
        for (String name : family.localRank) {
            if (has(name)) {
                return number(name);
            }
        }
        if (address.equals("localhost") || address.startsWith("127.") || address.equals("::1")) {
            return rank;
        }
        throw new IllegalArgumentException(
                family.localRank.getFirst()
                        + " is missing; set it to the number of the rank among those on its host,"
                        + " from 0: it chooses the GPU");
    }

    private boolean has(String name) {
        return !variables.getOrDefault(name, "").isBlank();
    }

    private int number(String name) {
        String text = variables.get(name).strip();
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException wrong) {
            throw new IllegalArgumentException(name + "=" + text + " is not a number", wrong);
        }
    }
}
