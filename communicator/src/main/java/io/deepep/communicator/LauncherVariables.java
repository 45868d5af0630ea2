package io.deepep.communicator;

import java.net.InetAddress;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What launchers tell their processes. */
record LauncherVariables(Map<String, String> variables) {
    private static final String CURE =
            "; start the process by deepep launch, torchrun, mpirun or srun, or set RANK,"
                    + " WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT";

    /** Of {@code rack[1-2]gpu[07-09,12],login} what comes before the comma between hosts. */
    private static final Pattern FIRST_HOSTS = Pattern.compile("(?:[^,\\[]++|\\[[^]]*+])++");

    /** Numbers of hosts, and the first of them. */
    private static final Pattern NUMBERS = Pattern.compile("\\[([^],-]*)[^]]*]");

    /** {@code 8(x2)} or {@code 8}: as many on every host. */
    private static final Pattern TASKS_PER_NODE = Pattern.compile("(\\d+)(?:\\(x\\d+\\))?");

    /**
     * The names by which one kind of launcher says who a process is; several names of the local
     * rank and the local size are tried.
     */
    private record Family(
            String name,
            String rank,
            String size,
            List<String> localRank,
            List<String> localSize) {}

    private static final Family TORCHRUN =
            new Family(
                    "torchrun",
                    "RANK",
                    "WORLD_SIZE",
                    List.of("LOCAL_RANK"),
                    List.of("LOCAL_WORLD_SIZE"));
    private static final Family OPEN_MPI =
            new Family(
                    "Open MPI",
                    "OMPI_COMM_WORLD_RANK",
                    "OMPI_COMM_WORLD_SIZE",
                    List.of("OMPI_COMM_WORLD_LOCAL_RANK"),
                    List.of("OMPI_COMM_WORLD_LOCAL_SIZE"));
    private static final Family PMI =
            new Family(
                    "PMI",
                    "PMI_RANK",
                    "PMI_SIZE",
                    List.of("MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"),
                    List.of("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"));

    /**
     * Batch scripts and interactive shells have a SLURM_PROCID too, and SLURM_NTASKS of their job.
     */
    private static final Family SLURM =
            new Family(
                    "srun",
                    "SLURM_PROCID",
                    "SLURM_STEP_NUM_TASKS",
                    List.of("SLURM_LOCALID"),
                    List.of("SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"));

    /**
     * The most specific launcher comes first: mpirun and torchrun are themselves started in jobs of
     * Slurm.
     */
    private static final List<Family> FAMILIES = List.of(TORCHRUN, OPEN_MPI, PMI, SLURM);

    /** Leaves out what srun tells PMI of its tasks, if it does: its own variables say the same. */
    LauncherVariables {
        boolean isOfSrun =
                variables.containsKey("PMI_RANK")
                        && Objects.equals(variables.get("PMI_RANK"), variables.get(SLURM.rank))
                        && Objects.equals(variables.get("PMI_SIZE"), variables.get(SLURM.size));
        if (isOfSrun) {
            variables = new HashMap<>(variables);
            variables.keySet().removeAll(List.of("PMI_RANK", "PMI_SIZE"));
        }
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
                localSize(family, size),
                address,
                masterPort(),
                secret(address),
                failureTimeout());
    }

    /** Whether there is anything to {@link #read}, beyond that this process is alone. */
    boolean tellOfOthers() {
        return FAMILIES.stream()
                .anyMatch(
                        family ->
                                isSet(family)
                                        ? number(family.size) != 1
                                        : has(family.rank) && !family.equals(SLURM));
    }

    private boolean isSet(Family family) {
        return has(family.rank) && has(family.size);
    }

    private Family family() {
        for (Family family : FAMILIES) {
            if (isSet(family)) {
                return family;
            }
            boolean hasRank = has(family.rank);
            if ((hasRank || has(family.size)) && !family.equals(SLURM)) {
                throw new IllegalArgumentException(
                        "%s is set, but %s is missing%s"
                                .formatted(
                                        hasRank ? family.rank : family.size,
                                        hasRank ? family.size : family.rank,
                                        CURE));
            }
        }
        throw new IllegalArgumentException(
                "this process has no rank: none of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_STEP_NUM_TASKS is set"
                        + CURE);
    }

    /**
     * RANK beside the variables of mpirun: both must say the same, unless torchrun was started once
     * for each host, or mpirun this process's shell alone. Those of Slurm may differ: they are also
     * set where srun starts another launcher.
     */
    private void requireNoContradiction(Family used, int rank, int size) {
        if (used.equals(TORCHRUN) && has("TORCHELASTIC_RUN_ID")) {
            return;
        }
        for (Family other : List.of(OPEN_MPI, PMI)) {
            if (isSet(other) && !other.equals(used) && number(other.size) != 1) {
                requireSame(used.rank, rank, other.rank, number(other.rank));
                requireSame(used.size, size, other.size, number(other.size));
            }
        }
    }

    private static void requireSame(String name, int value, String otherName, int other) {
        if (value != other) {
            throw new IllegalArgumentException(
                    "%s=%s contradicts %s=%s; unset the one that is wrong"
                            .formatted(name, value, otherName, other));
        }
    }

    private String masterAddress(Family family) {
        if (has("MASTER_ADDR")) {
            return variables.get("MASTER_ADDR").strip();
        }
        // srun puts rank 0 on the first host of its step.
        if (family.equals(SLURM) && has("SLURM_STEP_NODELIST")) {
            Matcher hosts = FIRST_HOSTS.matcher(variables.get("SLURM_STEP_NODELIST").strip());
            if (hosts.lookingAt()) {
                return NUMBERS.matcher(hosts.group()).replaceAll("$1");
            }
        }
        throw new IllegalArgumentException(
                "MASTER_ADDR is missing"
                        // torchrun sets it: somebody set RANK without it.
                        + (family.equals(TORCHRUN)
                                ? ", although RANK is set"
                                : ", which " + family.name + " does not set by itself")
                        + "; set it on all ranks to the host of rank 0"
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
        if (isLoopback(address)) {
            return rank;
        }
        throw new IllegalArgumentException(
                family.localRank.getFirst()
                        + " is missing; set it to the number of the rank among those on its host,"
                        + " from 0: it chooses the GPU");
    }

    /** However it is spelled: {@code [::1]} too, but no host whose name begins with 127. */
    static boolean isLoopback(String address) {
        try {
            return InetAddress.ofLiteral(address).isLoopbackAddress();
        } catch (IllegalArgumentException name) {
            return address.equalsIgnoreCase("localhost");
        }
    }

    /** Where the launcher does not say, all ranks are taken to be on one host. */
    private int localSize(Family family, int size) {
        for (String name : family.localSize) {
            if (has(name)) {
                String text = variables.get(name).strip();
                Matcher tasks = TASKS_PER_NODE.matcher(text);
                if (!tasks.matches()) {
                    throw new IllegalArgumentException(
                            "%s=%s is not one number for all hosts; start as many ranks on each"
                                    .formatted(name, text));
                }
                return parse(name, tasks.group(1));
            }
        }
        return size;
    }

    private String secret(String address) {
        if (has("DEEPEP_SECRET_FILE")) {
            if (has("DEEPEP_SECRET")) {
                throw new IllegalArgumentException(
                        "DEEPEP_SECRET and DEEPEP_SECRET_FILE are both set; unset one of them");
            }
            String file = variables.get("DEEPEP_SECRET_FILE").strip();
            return SecretFile.read("DEEPEP_SECRET_FILE=" + file, file);
        }
        if (variables.containsKey("DEEPEP_SECRET")) {
            return variables.get("DEEPEP_SECRET").strip();
        }
        if (isLoopback(address)) {
            return SecretFile.ofThisUser();
        }
        throw new IllegalArgumentException(
                ("MASTER_ADDR=%s is not a loopback address and neither DEEPEP_SECRET_FILE nor DEEPEP_SECRET is"
                                + " set%s")
                        .formatted(address, SecretFile.CURE));
    }

    private Duration failureTimeout() {
        return has("DEEPEP_FAILURE_SECONDS")
                ? Duration.ofSeconds(number("DEEPEP_FAILURE_SECONDS"))
                : ProcessEnvironment.DEFAULT_FAILURE_TIMEOUT;
    }

    private boolean has(String name) {
        return !variables.getOrDefault(name, "").isBlank();
    }

    private int number(String name) {
        return parse(name, variables.get(name).strip());
    }

    private static int parse(String name, String text) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException wrong) {
            boolean digits = text.matches("[+-]?\\d+");
            throw new IllegalArgumentException(
                    "%s=%s is %s".formatted(name, text, digits ? "out of range" : "not a number"),
                    wrong);
        }
    }
}
