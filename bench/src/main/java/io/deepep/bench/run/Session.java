package io.deepep.bench.run;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.Network;
import java.util.List;
import java.util.function.Consumer;

/**
 * The ranks of a job that this process runs, each a thread with an open buffer. Lists have a place
 * for every rank of the job.
 */
public final class Session implements AutoCloseable {
    private static final double NANOS_PER_SECOND = 1e9;

    private final Job job;
    private final Consumer<Buffer.Builder> limits;
    private final RankSource ranks;
    private final RankTeam team;
    private PerRank<RankMemory> memories;
    private PerRank<Buffer> buffers;
    private long deviceBytesPerRank;
    private double openSeconds;

    private Session(Job job, RankSource ranks, Consumer<Buffer.Builder> limits) {
        this.job = job;
        this.limits = limits;
        this.ranks = ranks;
        this.team = RankTeam.start(ranks);
    }

    /**
     * Starts the ranks and opens their buffers.
     *
     * @param ranks that this session closes
     * @param limits sets the limits of the modes that are used
     * @throws UsageException if the buffers cannot be opened with the job's values
     */
    public static Session open(Job job, RankSource ranks, Consumer<Buffer.Builder> limits) {
        Session session = new Session(job, ranks, limits);
        try {
            session.memories =
                    PerRank.open(
                            session.team,
                            rank -> RankMemory.of(job.placement().device(session.localRank(rank))));
            long before = session.usedDeviceBytes();
            long begin = System.nanoTime();
            session.openBuffers();
            session.openSeconds = (System.nanoTime() - begin) / NANOS_PER_SECOND;
            session.deviceBytesPerRank =
                    (session.usedDeviceBytes() - before)
                            / job.placement().ranksPerGpu(job.numRanks());
        } catch (RankFailure refused) {
            session.close();
            throw refused.asUsage();
        }
        return session;
    }

    private void openBuffers() {
        buffers = PerRank.open(team, this::openBuffer);
    }

    /** Of the first local rank's GPU, which no other holds more ranks than. */
    private long usedDeviceBytes() {
        return memory(ranks.localRanks().getFirst()).usedDeviceBytes();
    }

    private Buffer openBuffer(int rank) {
        Buffer.Builder builder =
                Buffer.builder(ranks.communicator(rank))
                        .ranksPerNode(job.topology().numNvlRanks())
                        .device(job.placement().device(localRank(rank)))
                        .network(job.network())
                        .timeout(job.timeout())
                        .maskTimedOutRanks(job.masksTimedOut());
        limits.accept(builder);
        return builder.open();
    }

    /** Closes the buffers and opens new ones: after a failure they may refuse to go on. */
    public void reopen() {
        buffers.close();
        ranks.renew();
        openBuffers();
    }

    /** The number of a rank of this process among those on its host. */
    private int localRank(int rank) {
        return ranks.communicator(rank).localRank();
    }

    /** The threads of the local ranks. */
    public RankTeam team() {
        return team;
    }

    /** {@link RankTeam#run}. */
    public void run(RankTeam.Work each) {
        team.run(each);
    }

    /** {@link RankTeam#ask}. */
    public <T> List<T> ask(RankTeam.Question<T> each) {
        return team.ask(each);
    }

    /** A local rank's way to the others, for meetings of its own between the rounds' work. */
    public Communicator communicator(int rank) {
        return ranks.communicator(rank);
    }

    /**
     * Times of ranks of other processes beside those of local ones: the slowest; collective.
     *
     * @param nanos of the slowest local rank in each run
     */
    public long[] slowest(long[] nanos) {
        return ranks.slowest(nanos);
    }

    /** The buffer of a local rank. */
    public Buffer buffer(int rank) {
        return buffers.get(rank);
    }

    /** The memory of a local rank. */
    public RankMemory memory(int rank) {
        return memories.get(rank);
    }

    /** Processes that the ranks are spread over. */
    public int numProcesses() {
        return job.numRanks() / ranks.localRanks().size();
    }

    /** Whether this process is the one that writes results down. */
    public boolean writesResults() {
        return ranks.localRanks().contains(0);
    }

    /** Device, shape and processes in a line. */
    public String describe() {
        int hosts = job.placement().numHosts(job.numRanks());
        return "%s, %s%s%s%s"
                .formatted(
                        job.placement().describe(),
                        job.describe(),
                        numProcesses() == 1 ? "" : ", " + numProcesses() + " processes",
                        hosts == 1 ? "" : " on " + hosts + " hosts",
                        network() == null ? "" : ", " + network() + " between nodes");
    }

    /** What carries rows between nodes of GPUs; null if it is one node, or ranks have none. */
    public String network() {
        if (!job.placement().isCuda() || !job.topology().isInternode()) {
            return null;
        }
        Network chosen = buffer(ranks.localRanks().getFirst()).options().network();
        return switch (chosen) {
            case Network.Nvshmem nvshmem ->
                    "NVSHMEM, transport "
                            + nvshmem.transport()
                            + (nvshmem.pureRdma() ? ", pure RDMA" : "");
            case Network.Ibgda ibgda -> "IBGDA" + (ibgda.pureRdma() ? ", pure RDMA" : "");
            case Network.PeerMemory _, Network.Auto _ -> chosen.toString();
        };
    }

    /** The job. */
    public Job job() {
        return job;
    }

    /** How long opening the buffers took, until the last of this process's ranks had its own. */
    public double openSeconds() {
        return openSeconds;
    }

    /**
     * Device memory that opening the buffers took, for each rank of a GPU: symmetric memory,
     * scratch and device code, but no results. 0 on the host.
     */
    public long deviceBytesPerRank() {
        return deviceBytesPerRank;
    }

    /** A way to bring tensors of a local rank to the host. */
    public Downloads downloads(int rank) {
        return new Downloads(memory(rank));
    }

    /**
     * Lets the device memory of results that nobody holds any more return to its pools: they learn
     * from the garbage collector, which sees little reason to run while the Java heap is small.
     */
    public void dropUnusedResults() {
        if (job.placement().isCuda()) {
            System.gc();
        }
    }

    @Override
    public void close() {
        PerRank<RankMemory> openMemories = memories;
        PerRank<Buffer> openBuffers = buffers;
        try (team;
                ranks;
                openMemories;
                openBuffers) {
            // In the other order, those that were opened, whatever becomes of one.
        }
    }
}
