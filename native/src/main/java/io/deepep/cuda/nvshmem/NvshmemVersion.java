package io.deepep.cuda.nvshmem;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A version of NVSHMEM. */
public record NvshmemVersion(int major, int minor, int patch) {
    /** What the device code is linked with. The host library must not be older. */
    public static final NvshmemVersion DEVICE = new NvshmemVersion(3, 4, 5);

    private static final Pattern TEXT = Pattern.compile("(\\d{1,4})\\.(\\d{1,4})\\.(\\d{1,4}).*");

    /** The version a text begins with, if it does. */
    static Optional<NvshmemVersion> find(String text) {
        Matcher matcher = TEXT.matcher(text);
        if (!matcher.matches()) {
            return Optional.empty();
        }
        return Optional.of(
                new NvshmemVersion(
                        Integer.parseInt(matcher.group(1)),
                        Integer.parseInt(matcher.group(2)),
                        Integer.parseInt(matcher.group(3))));
    }

    /**
     * Whether a host library of this version takes our device code: NVSHMEM asks for the same major
     * and no smaller minor number.
     */
    public boolean isSupported() {
        return major == DEVICE.major && minor >= DEVICE.minor;
    }

    @Override
    public String toString() {
        return major + "." + minor + "." + patch;
    }
}
