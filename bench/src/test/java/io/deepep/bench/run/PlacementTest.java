package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Device;
import org.junit.jupiter.api.Test;

/** Which rank has which GPU, on one host and on several. */
final class PlacementTest {
    private static final int[][] ONE_ROW_EACH = {
        {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}
    };

    private static Placement gpus(int numGpus, int hostSize) {
        return new Placement(numGpus, hostSize, "");
    }

    @Test
    void ranksOfOneHostShareItsGpus() {
        Placement placement = gpus(2, Integer.MAX_VALUE);
        assertThat(placement.ranksPerGpu(4)).isEqualTo(2);
        assertThat(placement.numHosts(4)).isEqualTo(1);
        assertThat(placement.allGpus(4)).isEqualTo(2);
        assertThat(placement.device(3)).isEqualTo(Device.cuda(1));
        assertThat(placement.busiestRows(ONE_ROW_EACH)).isEqualTo(2 * 3);
    }

    /** A rank of another host takes no part of a GPU here. */
    @Test
    void eachHostHasItsOwnGpus() {
        Placement placement = gpus(2, 2);
        assertThat(placement.ranksPerGpu(4)).isEqualTo(1);
        assertThat(placement.ranksPerHost(4)).isEqualTo(2);
        assertThat(placement.numHosts(4)).isEqualTo(2);
        assertThat(placement.allGpus(4)).isEqualTo(4);
        assertThat(placement.busiestRows(ONE_ROW_EACH)).isEqualTo(3);
        assertThat(gpus(1, 2).ranksPerGpu(4)).isEqualTo(2);
    }
}
