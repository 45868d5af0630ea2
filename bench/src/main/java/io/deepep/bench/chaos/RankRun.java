package io.deepep.bench.chaos;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.Network;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.RankMemory;
import io.deepep.error.DeepEpTimeoutException;
import java.time.Duration;
import java.util.function.Supplier;

/**
 * How ranks are placed, and how long they wait.
 *
 * @param placement of ranks on devices
 * @param ranksPerNode of the whole group; 1 or all of its ranks where some are missing
 * @param network between nodes
 * @param timeout of buffers
 */
public record RankRun(Placement placement, int ranksPerNode, Network network, Duration timeout) {
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

    /** Whether anything goes between nodes over the network where all ranks take part. */
    public boolean usesNetwork(int numRanks) {
        return placement.isCuda() && ranksPerNode < numRanks;
    }

    /** Ranks of a node where {@code numRanks} take part. */
    private int nodeSize(int numRanks) {
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
     * @param next its way to them once the victim is replaced, which then happens in buffers that
     *     stay open; null if it is not replaced
     */
    Outcome run(
            Trial trial,
            int rank,
            int seat,
            Signals signals,
            int meetingPort,
            Supplier<Communicator> join,
            Supplier<Communicator> next) {
        try (Disturbance disturbance =
                new Disturbance(trial, rank, timeout, signals, meetingPort)) {
            disturbance.at(Moment.JOIN);
            try (Communicator communicator = join.get()) {
                try {
                    return rounds(trial, seat, communicator, disturbance, next);
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

    /** Makes undisturbed rounds as a rank that takes the place of the victim of {@code trial}. */
    Outcome join(Trial trial, int seat, Supplier<Communicator> next) {
        try (RankMemory memory = RankMemory.of(placement.device(seat));
                Communicator group = next.get();
                Buffer buffer = builder(trial, seat, group, true).join()) {
            goOn(trial, group, buffer, memory);
            return Outcome.PASSED;
        } catch (Throwable failure) {
            return Outcome.afterwards(failure);
        }
    }

    private Buffer.Builder builder(
            Trial trial, int seat, Communicator communicator, boolean masks) {
        Buffer.Builder builder =
                Buffer.builder(communicator)
                        .ranksPerNode(nodeSize(communicator.size()))
                        .device(placement.device(seat))
                        .network(network)
                        .maskTimedOutRanks(masks)
                        .timeout(timeout);
        Rounds.limits(builder, trial.mode(), communicator.size());
        return builder;
    }

    private Outcome rounds(
            Trial trial,
            int seat,
            Communicator communicator,
            Disturbance disturbance,
            Supplier<Communicator> next) {
        Buffer.Builder builder = builder(trial, seat, communicator, next != null);
        disturbance.at(Moment.OPEN);
        try (RankMemory memory = RankMemory.of(placement.device(seat));
                Buffer buffer = builder.open()) {
            Rounds rounds = new Rounds(trial, buffer, memory, disturbance);
            if (next != null) {
                return roundsAndReplacement(trial, rounds, disturbance, next, buffer, memory);
            }
            rounds.run();
            disturbance.at(Moment.CLOSE);
            return Outcome.PASSED;
        }
    }

    private Outcome roundsAndReplacement(
            Trial trial,
            Rounds rounds,
            Disturbance disturbance,
            Supplier<Communicator> next,
            Buffer buffer,
            RankMemory memory) {
        Outcome outcome;
        try {
            int lost = rounds.run();
            outcome = lost < 0 ? Outcome.PASSED : Outcome.without(lost);
        } catch (DeepEpTimeoutException named) {
            outcome = Outcome.of(named);
        }
        disturbance.awaitEnd();
        try (Communicator group = next.get()) {
            buffer.admit(group);
            goOn(trial, group, buffer, memory);
            return outcome;
        } catch (Throwable failure) {
            return Outcome.afterwards(failure);
        }
    }

    private void goOn(Trial trial, Communicator group, Buffer buffer, RankMemory memory) {
        Trial after = trial.after();
        Disturbance none =
                new Disturbance(after, buffer.topology().rank(), timeout, Signals.NONE, 0);
        int lost = new Rounds(after, buffer, memory, none).run();
        if (lost >= 0) {
            throw new IllegalStateException("rank " + lost + " did not come");
        }
        group.barrier(timeout);
    }
}
