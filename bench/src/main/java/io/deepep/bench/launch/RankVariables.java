package io.deepep.bench.launch;

import io.deepep.bench.run.UsageException;
import io.deepep.communicator.ProcessEnvironment;
import io.deepep.spi.LoopbackPorts;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The variables that tell each process which rank it is, and all of them where to meet.
 *
 * @param plan how many ranks there are, and which of them are here
 * @param meeting where rank 0 will listen
 * @param secretFile with the secret of this launch; empty where the launcher's own environment has
 *     the secret of all hosts
 * @param attempt how often the ranks have been started before
 */
record RankVariables(
        LaunchPlan plan, LaunchPlan.Meeting meeting, Optional<Path> secretFile, int attempt) {
    /** Those of an outer launcher that would contradict ours. */
    private static final List<String> FOREIGN =
            List.of(
                    "OMPI_COMM_WORLD_RANK",
                    "OMPI_COMM_WORLD_SIZE",
                    "PMI_RANK",
                    "PMI_SIZE",
                    "TORCHELASTIC_USE_AGENT_STORE",
                    "DEEPEP_MASTER_PORT");

    /**
     * For one attempt. The ranks of one host meet at a port that is free. Those of several meet at
     * the next port with each attempt, so that none joins what is left of the last.
     *
     * @throws UsageException if every rank would refuse its variables
     */
    static RankVariables create(LaunchPlan plan, Optional<Path> secretFile, int attempt) {
        LaunchPlan.Meeting meeting =
                plan.meeting()
                        .map(at -> new LaunchPlan.Meeting(at.address(), at.port() + attempt))
                        .orElseGet(() -> new LaunchPlan.Meeting("127.0.0.1", LoopbackPorts.free()));
        RankVariables variables = new RankVariables(plan, meeting, secretFile, attempt);
        Map<String, String> first = new HashMap<>(System.getenv());
        variables.writeTo(first, 0);
        UsageException.unlessRefused(() -> ProcessEnvironment.from(first));
        return variables;
    }

    /** Writes the variables of a rank of this host into the environment of its process. */
    void writeTo(Map<String, String> environment, int localRank) {
        FOREIGN.forEach(environment::remove);
        environment.put("RANK", Integer.toString(plan.firstRank() + localRank));
        environment.put("WORLD_SIZE", Integer.toString(plan.numRanks()));
        environment.put("LOCAL_RANK", Integer.toString(localRank));
        environment.put("LOCAL_WORLD_SIZE", Integer.toString(plan.ranksPerNode()));
        environment.put("GROUP_RANK", Integer.toString(plan.nodeRank()));
        environment.put("TORCHELASTIC_RESTART_COUNT", Integer.toString(attempt));
        environment.put("MASTER_ADDR", meeting.address());
        environment.put("MASTER_PORT", Integer.toString(meeting.port()));
        secretFile.ifPresent(
                file -> {
                    environment.remove("DEEPEP_SECRET");
                    environment.put("DEEPEP_SECRET_FILE", file.toString());
                });
    }
}
