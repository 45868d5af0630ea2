package io.deepep;

import io.deepep.spi.BufferProvider;

/**
 * What normal mode takes where no configuration is given. Where ranks share a GPU, a buffer lowers
 * these numbers of multiprocessors to what fits there; others are the user's choice.
 *
 * <p>On one node the number follows from the GPU: a multiprocessor moves so many bytes in each of
 * its clocks, so links that carry twice as many bytes take twice as many multiprocessors. It is
 * that of {@link Config#recommended}, which is for an H100 or H200 (18 links of 26.6 GB/s, 1980
 * MHz), multiplied by how much more this GPU's links carry in a clock, and never less: 40 for a
 * B200 (18 links of 53.1 GB/s, 1965 MHz), where nothing has been measured. Between nodes the
 * network is the limit, and the number stays.
 *
 * @param dispatch configuration of dispatches
 * @param combine configuration of combines
 */
public record NormalDefaults(Config dispatch, Config combine) {
    /** What {@link Config#recommended} says, whatever the GPU. */
    public static NormalDefaults recommended(int numRanks) {
        Config config = Config.recommended(numRanks);
        return new NormalDefaults(config, config);
    }

    /** What a buffer takes on such a device where it has no {@link MachineProfile} either. */
    public static NormalDefaults of(EpTopology topology, Device device) {
        return device.isHost()
                ? recommended(topology.numRanks())
                : of(topology, device, BufferProvider.load());
    }

    static NormalDefaults of(EpTopology topology, Device device, BufferProvider provider) {
        Config config = Config.recommended(topology.numRanks());
        if (!topology.isInternode() && !device.isHost()) {
            config = config.withNumSms(forLinks(config.numSms(), provider.linkDemand(device)));
        }
        return new NormalDefaults(config, config);
    }

    /** The even number that is nearest. */
    static int forLinks(int numSms, double demand) {
        return 2 * (int) Math.round(numSms * demand / 2);
    }

    static NormalDefaults of(EpTopology topology, MachineProfile profile) {
        Config config = Config.recommended(topology.numRanks());
        return new NormalDefaults(
                config.withNumSms(profile.dispatchSms()), config.withNumSms(profile.combineSms()));
    }
}
