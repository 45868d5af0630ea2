package io.deepep;

import io.deepep.spi.BufferProvider;

/**
 * The configurations that normal mode uses if none is given. Where ranks share a GPU, a buffer
 * lowers these default numbers of multiprocessors to what fits there; it never changes a number
 * that differs from them.
 *
 * <p>On one node, the number depends on the GPU. A multiprocessor moves a fixed number of bytes per
 * clock, so links that carry twice as many bytes need twice as many multiprocessors. The number of
 * {@link Config#recommended} is for an H100 or H200 (18 links of 26.6 GB/s, 1980 MHz); it is scaled
 * up by how much more the links of this GPU carry per clock, and never scaled down. This gives 40
 * for a B200 (18 links of 53.1 GB/s, 1965 MHz), on which nothing has been measured. On several
 * nodes of GPUs, the numbers are 16 for a dispatch and 24 for a combine: over virtual nodes of
 * H200s, more made a dispatch no faster, and a combine little.
 *
 * @param dispatch configuration of dispatches
 * @param combine configuration of combines
 */
public record NormalDefaults(Config dispatch, Config combine) {
    private static final int DISPATCH_SMS_ACROSS_NODES = 16;
    private static final int COMBINE_SMS_ACROSS_NODES = 24;

    /** {@link Config#recommended} for both, whatever the GPU. */
    public static NormalDefaults recommended(int numRanks) {
        Config config = Config.recommended(numRanks);
        return new NormalDefaults(config, config);
    }

    /** The defaults of GPUs on several nodes. */
    public static NormalDefaults acrossNodes(int numRanks) {
        Config config = Config.recommended(numRanks);
        return new NormalDefaults(
                config.withNumSms(DISPATCH_SMS_ACROSS_NODES),
                config.withNumSms(COMBINE_SMS_ACROSS_NODES));
    }

    /** The defaults of GPUs with the links of an H200, for plans of machines that are not here. */
    public static NormalDefaults ofGpus(EpTopology topology) {
        return topology.isInternode()
                ? acrossNodes(topology.numRanks())
                : recommended(topology.numRanks());
    }

    /** The defaults of a buffer on {@code device} without a {@link MachineProfile}. */
    public static NormalDefaults of(EpTopology topology, Device device) {
        return device.isHost()
                ? recommended(topology.numRanks())
                : of(topology, device, BufferProvider.load());
    }

    static NormalDefaults of(EpTopology topology, Device device, BufferProvider provider) {
        if (device.isHost()) {
            return recommended(topology.numRanks());
        }
        NormalDefaults gpus = ofGpus(topology);
        if (topology.isInternode()) {
            return gpus;
        }
        int numSms = forLinks(gpus.dispatch().numSms(), provider.linkDemand(device));
        Config config = gpus.dispatch().withNumSms(numSms);
        return new NormalDefaults(config, config);
    }

    /** The nearest even number. */
    static int forLinks(int numSms, double demand) {
        return 2 * (int) Math.round(numSms * demand / 2);
    }

    static NormalDefaults of(EpTopology topology, MachineProfile profile) {
        Config config = Config.recommended(topology.numRanks());
        return new NormalDefaults(
                config.withNumSms(profile.dispatchSms()), config.withNumSms(profile.combineSms()));
    }
}
