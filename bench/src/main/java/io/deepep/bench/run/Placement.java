package io.deepep.bench.run;

import io.deepep.Device;
import io.deepep.buffer.memory.GpuSharing;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.GpuShare;
import java.util.stream.LongStream;

/**
 * Who moves the bytes, and on which GPU each rank lives: the ranks of a host go round its GPUs.
 *
 * @param numGpus GPUs in use on each host, 0 for ranks without
 * @param hostSize the most ranks that a host has; those of a job are numbered host by host
 * @param note why it is this backend, if somebody should know; else empty
 */
public record Placement(int numGpus, int hostSize, String note) {
    /** Ranks without GPUs. */
    public static Placement host(String note) {
        return new Placement(0, launchedHere(), note);
    }

    /**
     * Ranks on GPUs.
     *
     * @param wanted at most so many GPUs; 0 for all
     * @throws UsageException if there are not so many
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used here
     */
    public static Placement cuda(int wanted) {
        int found = CudaDriver.numDevices();
        if (wanted < 0 || wanted > found) {
            throw new UsageException(
                    "--gpus=" + wanted + " is not in [1, " + found + "], the GPUs visible here");
        }
        return new Placement(wanted == 0 ? found : wanted, launchedHere(), "");
    }

    /** Ranks that a launcher did not start are all threads of this process. */
    private static int launchedHere() {
        return LaunchedGroup.localSize().orElse(Integer.MAX_VALUE);
    }

    /** Whether ranks live on GPUs. */
    public boolean isCuda() {
        return numGpus > 0;
    }

    /** Where a rank lives, by its number among those of its host. */
    public Device device(int localRank) {
        return isCuda() ? Device.cuda(localRank % numGpus) : Device.host();
    }

    /** Hosts that a job of so many ranks is on. */
    public int numHosts(int numRanks) {
        return Math.ceilDiv(numRanks, hostSize);
    }

    /** The most ranks of such a job on one host. */
    public int ranksPerHost(int numRanks) {
        return Math.min(numRanks, hostSize);
    }

    /** GPUs in use on all hosts. */
    public int allGpus(int numRanks) {
        return numHosts(numRanks) * numGpus;
    }

    /** The most ranks on one GPU; 1 for ranks without. */
    public int ranksPerGpu(int numRanks) {
        return isCuda() ? Math.ceilDiv(ranksPerHost(numRanks), numGpus) : 1;
    }

    /**
     * Multiprocessors that each rank can hold while all run at once, at least 1; buffers refuse
     * ranks that cannot. No limit on the host.
     */
    public int smsPerRank(int numRanks) {
        if (!isCuda()) {
            return Integer.MAX_VALUE;
        }
        int ranks = ranksPerGpu(numRanks);
        int processes = LaunchedGroup.size().orElse(1);
        int parts =
                gpu().mpsPercentage() < CudaDevice.WHOLE
                        ? GpuSharing.partsOfAShare(Math.ceilDiv(ranks, processes), ranks)
                        : ranks;
        return Math.max(1, new GpuShare(gpu().numSms(), parts).smsPerPart());
    }

    /**
     * Refuses more multiprocessors than each rank can hold while all run at once.
     *
     * @throws UsageException if {@code --sms} exceeds {@link #smsPerRank}
     */
    public void requireRoom(int sms, int numRanks) {
        int room = smsPerRank(numRanks);
        if (sms > room) {
            throw new UsageException(
                    ("--sms=%s exceeds the %s that each of %s ranks can have on %s; lower it, or use more"
                                    + " GPUs")
                            .formatted(sms, room, ranksPerGpu(numRanks), gpu().name()));
        }
    }

    /**
     * Rows that the ranks of the busiest GPU send to other ranks, or receive from them if these are
     * more. A single rank has only itself.
     *
     * @param rows [R][R] that the first rank sends to the second
     */
    public long busiestRows(int[][] rows) {
        int numRanks = rows.length;
        int places = isCuda() ? allGpus(numRanks) : numRanks;
        long[] out = new long[places];
        long[] in = new long[places];
        for (int from = 0; from < numRanks; from++) {
            for (int to = 0; to < numRanks; to++) {
                if (from != to || numRanks == 1) {
                    out[place(from)] += rows[from][to];
                    in[place(to)] += rows[from][to];
                }
            }
        }
        return LongStream.concat(LongStream.of(out), LongStream.of(in)).max().orElseThrow();
    }

    /** The number of a rank's GPU among those of all hosts; of a rank without, its own. */
    private int place(int rank) {
        return isCuda() ? rank / hostSize * numGpus + rank % hostSize % numGpus : rank;
    }

    /** The first GPU; the others are taken to be like it. */
    public CudaDevice gpu() {
        return CudaDevice.of(0);
    }

    /** The backend in a few words, for the first line of a report. */
    public String describe() {
        String where = isCuda() ? " on " + numGpus + " x " + gpu().name() : "";
        return device(0).kind() + " backend" + where + (note.isEmpty() ? "" : " (" + note + ")");
    }
}
