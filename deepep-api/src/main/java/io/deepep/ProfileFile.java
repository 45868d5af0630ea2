package io.deepep;

import io.deepep.spi.BufferProvider;
import java.nio.file.Path;

/**
 * A profile and the file that it came from, for messages.
 *
 * @param file the path as it was given
 */
record ProfileFile(Path file, MachineProfile profile) {
    private static final String PROPERTY = "deepep.profile";
    private static final String CURE =
            "; write a profile with deepep bench normal --profile on this machine, or give"
                    + " dispatchConfig and combineConfig";

    static ProfileFile read(Path file) {
        return new ProfileFile(file, MachineProfile.read(file));
    }

    /** The profile in the file that the system property names, or null. */
    static ProfileFile ofProperty() {
        String file = System.getProperty(PROPERTY, "");
        return file.isEmpty() ? null : read(Path.of(file));
    }

    void requireGpu(BufferProvider provider, Device device) {
        String name = device.isHost() ? "no GPU" : provider.gpuName(device);
        if (!profile.gpu().equals(name)) {
            throw new IllegalArgumentException(
                    "profile %s is for gpu=%s, but device=%s is %s%s"
                            .formatted(
                                    file,
                                    profile.gpu(),
                                    device,
                                    name.isEmpty() ? "not visible here" : name,
                                    CURE));
        }
    }

    void requireNodes(EpTopology topology) {
        if ((profile.nodes() == 1) == topology.isInternode()) {
            throw new IllegalArgumentException(
                    "profile %s is for nodes=%s, but the group has %s%s"
                            .formatted(file, profile.nodes(), topology.numRdmaRanks(), CURE));
        }
    }
}
