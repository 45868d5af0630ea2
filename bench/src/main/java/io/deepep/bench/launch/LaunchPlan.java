package io.deepep.bench.launch;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * What to start on this host.
 *
 * @param command and its arguments
 * @param ranksPerNode processes on this host, and on each other one
 * @param numNodes hosts
 * @param nodeRank which of them this is
 * @param meeting where rank 0 listens; empty for a free port of this host's loopback address
 * @param maxRestarts how often all ranks of this host are started again after one has failed
 * @param logFolder receives the output of each rank; empty for none
 * @param numaBinding whether each rank runs on the processors beside its GPU only
 */
public record LaunchPlan(
        List<String> command,
        int ranksPerNode,
        int numNodes,
        int nodeRank,
        Optional<Meeting> meeting,
        int maxRestarts,
        Optional<Path> logFolder,
        boolean numaBinding) {
    /**
     * Where the ranks of several hosts meet.
     *
     * @param address of the host of rank 0
     * @param port free there, and as many behind it as there may be restarts
     */
    public record Meeting(String address, int port) {}

    int firstRank() {
        return nodeRank * ranksPerNode;
    }

    int numRanks() {
        return numNodes * ranksPerNode;
    }
}
