package io.deepep.bench.chaos;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.RankMemory;
import java.time.Duration;
import java.util.function.Supplier;

/**
 * How ranks are placed, and how long they wait.
 *
 * @param placement of ranks on devices
 * @param ranksPerNode of the whole group; 1 or all of its ranks where some are missing
 * @param timeout of buffers
 */
public record RankRun(Placement placement, int ranksPerNode, Duration timeout) {
    /** A group meets within so many time-outs, on a busy machine too. */
    private static final int MEETING_TIMEOUTS = 4;

    /** How long ranks wait for each other to join. */
    Duration meetingTimeout() {
        return timeout.multipliedBy(MEETING_TIMEOUTS);
    }

    /** Longer than any run takes in which nothing hangs. */
    Duration patience() {
        return meetingTimeout().plus(timeout.multipliedBy(4L * Trial.ROUNDS)).plusSeconds(30);
    }

    /** Ranks of a node where {@code numRanks} take part. */
    int nodeSize(int numRanks) {
        if (numRanks % ranksPerNode == 0) {
            return ranksPerNode;
        }
        return ranksPerNode < numRanks ? 1 : numRanks;
    }

    /**
     * Makes a run as one rank, and tells how it came out of it.
     *
     * @param seat a number that says which device it works on
     * @param meetingPort of rank 0, or 0 where ranks are threads
     * @param join makes the rank's way to the others
     */
    Outcome run(
            Trial trial,
            int rank,
            int seat,
            Signals signals,
            int meetingPort,
            Supplier<Communicator> join) {
        try (Disturbance disturbance =
                new Disturbance(trial, rank, timeout, signals, meetingPort)) {
            disturbance.at(Moment.JOIN);
            try (Communicator communicator = join.get()) {
                try {
                    rounds(trial, seat, communicator, disturbance);
                    return Outcome.PASSED;
                } catch (Disturbance.Left left) {
                    return Outcome.PASSED;
                } catch (Throwable failure) {
                    communicator.fail(failure);
                    throw failure;
                }
            }
        } catch (Throwable failure) {
            return Outcome.of(failure);
        }
    }

    private void rounds(Trial trial, int seat, Communicator communicator, Disturbance disturbance) {
        int nodeSize = nodeSize(communicator.size());
        Buffer.Builder builder =
                Buffer.builder(communicator)
                        .ranksPerNode(nodeSize)
                        .device(placement.device(seat))
                        .timeout(timeout);
        Rounds.limits(builder, trial.mode(), communicator.size());
        disturbance.at(Moment.OPEN);
        try (RankMemory memory = RankMemory.of(placement, seat);
                Buffer buffer = builder.open()) {
            new Rounds(trial, nodeSize, buffer, memory, disturbance).run();
            disturbance.at(Moment.CLOSE);
        }
    }
}
