package io.deepep.cuda.topology;

import java.util.List;

/**
 * Network interfaces bonded into one. A queue pair stays on one of them, so filling the bond takes
 * several.
 *
 * @param name of the bonding interface
 * @param mode as the kernel names it, for example {@code 802.3ad}
 * @param activeSlaves names of the interfaces whose link is up, sorted
 * @param downSlaves names of the others, sorted
 */
public record Bond(String name, String mode, List<String> activeSlaves, List<String> downSlaves) {
    public Bond {
        activeSlaves = List.copyOf(activeSlaves);
        downSlaves = List.copyOf(downSlaves);
    }

    /** Number of links that carry traffic at the same time. */
    public int numPaths() {
        return mode.equals("active-backup") ? 1 : Math.max(1, activeSlaves.size());
    }
}
