package io.deepep.spi.posix;

import io.deepep.spi.Meeting;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;

/**
 * Names the memory that the processes of a job on one host share. The names contain a hash to which
 * every rank has contributed, so that no rank can choose them; memory of other jobs, and any other
 * file, is refused.
 */
public final class JobMemory {
    private static final String NEW = "new ";

    private final String job;

    private JobMemory(String job) {
        this.job = job;
    }

    /**
     * Agrees on the names with all ranks, or learns those on which others have agreed before.
     * Collective.
     *
     * @param own what this rank agreed on before, or null if it is new
     * @param first what each rank does or checks before any rank continues
     */
    public static JobMemory agree(Meeting meeting, JobMemory own, Runnable first) {
        List<String> said =
                meeting.together(
                        () -> {
                            first.run();
                            return own == null ? NEW + UUID.randomUUID() : own.job;
                        });
        List<String> jobs = said.stream().filter(job -> !job.startsWith(NEW)).distinct().toList();
        if (jobs.size() > 1) {
            throw new IllegalStateException(
                    "the ranks belong to " + jobs.size() + " jobs instead of one");
        }
        return new JobMemory(jobs.isEmpty() ? hash(String.join(" ", said)) : jobs.getFirst());
    }

    private static String hash(String text) {
        try {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(bytes);
            return HexFormat.of().formatHex(hash, 0, 16);
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError("every Java has SHA-256", impossible);
        }
    }

    private String name(int rank) {
        return "deepep-" + job + "-" + rank;
    }

    /** Allocates {@code rank}'s memory, see {@link SharedMemory#create}. */
    public SharedMemory create(int rank, long numBytes) {
        return SharedMemory.create(name(rank), numBytes);
    }

    /**
     * The text by which {@link #open} finds {@code memory} on other ranks; valid until the memory
     * is closed.
     */
    public static String offer(SharedMemory memory) {
        return ProcessHandle.current().pid() + " " + memory.fd();
    }

    /** Opens the memory that {@code peer} offers, see {@link SharedMemory#open}. */
    public SharedMemory open(int peer, String offer, long numBytes) {
        String[] pidAndFd = offer.split(" ", 2);
        return SharedMemory.open(
                Long.parseLong(pidAndFd[0]), Integer.parseInt(pidAndFd[1]), name(peer), numBytes);
    }
}
