package io.deepep.bench.run;

import io.deepep.Backend;
import io.deepep.Buffer;
import io.deepep.Device;
import io.deepep.InProcessGroup;
import io.deepep.error.DeepEpUnavailableException;
import java.util.List;
import java.util.function.Consumer;

/** The ranks of a job, each a thread with an open buffer. */
public final class Session implements AutoCloseable {
    private final Job job;
    private final Consumer<Buffer.Builder> limits;
    private final RankTeam team;
    private InProcessGroup group;
    private List<Buffer> buffers;

    private Session(Job job, Consumer<Buffer.Builder> limits) {
        this.job = job;
        this.limits = limits;
        this.team = RankTeam.start(job.numRanks());
    }

    /**
     * Starts the ranks and opens their buffers.
     *
     * @param limits sets the limits of the modes that are used
     * @throws UsageException if the buffers cannot be opened with the job's values
     */
    public static Session open(Job job, Consumer<Buffer.Builder> limits) {
        Session session = new Session(job, limits);
        try {
            session.openBuffers();
        } catch (RankFailure refused) {
            session.close();
            throw asUsage(refused);
        }
        return session;
    }

    private static RuntimeException asUsage(RankFailure refused) {
        Throwable cause = refused.getCause();
        if (cause instanceof IllegalArgumentException
                || cause instanceof DeepEpUnavailableException) {
            return UsageException.of((RuntimeException) cause);
        }
        if (cause instanceof OutOfMemoryError) {
            return new UsageException(
                    "out of memory while opening the buffers ("
                            + cause.getMessage()
                            + "); lower --num-tokens, --sms or the number of ranks");
        }
        return refused;
    }

    private void openBuffers() {
        group = InProcessGroup.of(job.numRanks());
        buffers =
                team.ask(
                        rank -> {
                            Buffer.Builder builder =
                                    Buffer.builder(group.communicator(rank))
                                            .ranksPerNode(job.topology().numNvlRanks())
                                            .backend(job.backend())
                                            .device(
                                                    job.backend() == Backend.CUDA
                                                            ? Device.cuda(rank)
                                                            : Device.host())
                                            .dispatchConfig(job.dispatchConfig())
                                            .combineConfig(job.combineConfig())
                                            .timeout(job.timeout());
                            limits.accept(builder);
                            return builder.open();
                        });
    }

    /** Closes the buffers and opens new ones: after a failure they may refuse to go on. */
    public void reopen() {
        closeBuffers();
        openBuffers();
    }

    /** The threads. */
    public RankTeam team() {
        return team;
    }

    /** The buffer of one rank. */
    public Buffer buffer(int rank) {
        return buffers.get(rank);
    }

    /** The job. */
    public Job job() {
        return job;
    }

    /** Who moves the bytes, never {@link Backend#AUTO}. */
    public Backend backend() {
        return buffer(0).options().backend();
    }

    private void closeBuffers() {
        if (buffers != null) {
            List<Buffer> open = buffers;
            buffers = null;
            team.run(rank -> open.get(rank).close());
        }
        if (group != null) {
            group.close();
        }
    }

    @Override
    public void close() {
        try {
            closeBuffers();
        } finally {
            team.close();
        }
    }
}
