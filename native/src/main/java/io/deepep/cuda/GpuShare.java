package io.deepep.cuda;

/**
 * What a rank can use of its GPU. Kernels of ranks wait for each other, so those of all ranks on
 * the GPU must be able to run at the same time.
 *
 * @param numSms multiprocessors that all ranks on the GPU have together
 * @param parts into which these are divided, one for each kernel that runs
 */
public record GpuShare(int numSms, int parts) {
    /** The multiprocessors of a part: an even number, 1 or 0. */
    public int smsPerPart() {
        int share = numSms / parts;
        return share == 1 ? 1 : share / 2 * 2;
    }

    /**
     * How many blocks of that shape can be there at once: one on each multiprocessor, as kernels
     * are made for that, or none.
     */
    public int maxBlocks(CudaFunction kernel, int numThreads, int dynamicSharedBytes) {
        return kernel.maxBlocksPerSm(numThreads, dynamicSharedBytes) > 0 ? numSms : 0;
    }
}
