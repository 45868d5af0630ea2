package io.deepep.bench.run;

import io.deepep.Device;
import io.deepep.buffer.memory.GpuSharing;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import java.util.stream.LongStream;

/**
 * Who moves the bytes, and on which GPU each rank lives: ranks go round the GPUs.
 *
 * @param kind of the devices of all ranks
 * @param numGpus GPUs in use, 0 on the host
 * @param note why it is this backend, if somebody should know; else empty
 */
public record Placement(Device.Kind kind, int numGpus, String note) {
    /** Ranks without GPUs. */
    public static Placement host(String note) {
        return new Placement(Device.Kind.HOST, 0, note);
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
        return new Placement(Device.Kind.CUDA, wanted == 0 ? found : wanted, "");
    }

    /** Whether ranks live on GPUs. */
    public boolean isCuda() {
        return kind == Device.Kind.CUDA;
    }

    /** Where a rank lives. */
    public Device device(int rank) {
        return isCuda() ? Device.cuda(rank % numGpus) : Device.host();
    }

    /** The most ranks on one GPU; 1 on the host. */
    public int ranksPerGpu(int numRanks) {
        return isCuda() ? Math.ceilDiv(numRanks, numGpus) : 1;
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
        return Math.max(1, GpuSharing.smsPerRank(gpu().numSms(), parts));
    }

    /**
     * Rows that the ranks of the busiest GPU send to other ranks, or receive from them if these are
     * more. A single rank has only itself.
     *
     * @param rows [R][R] that the first rank sends to the second
     */
    public long busiestRows(int[][] rows) {
        int numRanks = rows.length;
        int places = isCuda() ? numGpus : numRanks;
        long[] out = new long[places];
        long[] in = new long[places];
        for (int from = 0; from < numRanks; from++) {
            for (int to = 0; to < numRanks; to++) {
                if (from != to || numRanks == 1) {
                    out[from % places] += rows[from][to];
                    in[to % places] += rows[from][to];
                }
            }
        }
        return LongStream.concat(LongStream.of(out), LongStream.of(in)).max().orElseThrow();
    }

    /** The first GPU; the others are taken to be like it. */
    public CudaDevice gpu() {
        return CudaDevice.of(0);
    }

    /** The backend in a few words, for the first line of a report. */
    public String describe() {
        String where = isCuda() ? " on " + numGpus + " x " + gpu().name() : "";
        return kind + " backend" + where + (note.isEmpty() ? "" : " (" + note + ")");
    }
}
