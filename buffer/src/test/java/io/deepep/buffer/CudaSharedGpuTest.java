package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.Config;
import io.deepep.Device;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import io.deepep.testkit.conformance.BackendSuite;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Ranks on one GPU whose kernels do not fit there at once. */
@BackendSuite(only = "cuda")
class CudaSharedGpuTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    private static Buffer.Builder onTheGpu(Communicator communicator) {
        return Buffer.builder(communicator)
                .device(Device.cuda(0))
                .normal(NormalLimits.of(8, 128, 2, 4))
                .timeout(LONG);
    }

    @Test
    void allRanksRefuseToOpen() throws InterruptedException {
        int half = CudaDevice.of(0).numSms() / 2 / 2 * 2;
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        Buffer.Builder builder =
                                onTheGpu(communicator)
                                        .combineConfig(Config.recommended(2).withNumSms(half + 2));
                        assertThatThrownBy(builder::open)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContainingAll(
                                        "combineConfig needs " + (half + 2),
                                        "ranks [0, 1] that share one",
                                        "lower Config.numSms to " + half);
                        builder.combineConfig(Config.recommended(2).withNumSms(half))
                                .open()
                                .close();
                    });
        }
    }

    /** Work of one rank there would wait for kernels of the other, which wait for it. */
    @Test
    void aDefaultStreamIsNotForSeveralRanks() throws InterruptedException {
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        Buffer.Builder builder = onTheGpu(communicator);
                        if (communicator.rank() == 1) {
                            builder.communicationStream(CudaStream.wrap(context, 0));
                        }
                        assertThatThrownBy(builder::open)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining(
                                        "communicationStream of rank 1 is a default stream");
                    });
        }
    }
}
