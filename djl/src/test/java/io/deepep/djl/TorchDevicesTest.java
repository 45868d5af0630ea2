package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Device;
import org.junit.jupiter.api.Test;

class TorchDevicesTest {
    /** The suites take the CPU where there is no GPU: not where one is required. */
    @Test
    void gpusAreThereIfRequired() {
        if (System.getProperty("deepep.require", "").contains("cuda")) {
            assertThat(TorchDevices.numGpus()).isPositive();
        }
    }

    @Test
    void ranksTakeGpusInTurn() {
        int numGpus = TorchDevices.numGpus();
        for (int rank = 0; rank < 5; rank++) {
            Device expected = numGpus == 0 ? Device.cpu() : Device.gpu(rank % numGpus);
            assertThat(TorchDevices.ofRank(rank)).isEqualTo(expected);
        }
    }

    @Test
    void devicesHaveTheSameNumbers() {
        assertThat(TorchDevices.deviceOf(Device.cpu())).isEqualTo(io.deepep.Device.host());
        assertThat(TorchDevices.deviceOf(Device.gpu(3))).isEqualTo(io.deepep.Device.cuda(3));
    }
}
