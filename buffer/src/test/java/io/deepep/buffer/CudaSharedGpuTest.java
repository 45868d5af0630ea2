package io.deepep.buffer;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.Config;
import io.deepep.Device;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.RankFailedException;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import io.deepep.testkit.Programs;
import io.deepep.testkit.conformance.BackendSuite;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
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

    /** A driver that another library has started has fewer hardware queues than ranks need. */
    @Test
    void ranksBeyondTheQueuesOfAStartedDriverAreRefused() throws Exception {
        ProcessBuilder program = Programs.java(StartsTheDriver.class, Programs.SHORT_LIVED);
        program.environment().remove("CUDA_DEVICE_MAX_CONNECTIONS");
        assertThat(Programs.run(program).output())
                .contains(
                        "8 ranks: open",
                        "9 ranks: with the 8 hardware queues of a driver that another library started first");
        program.environment().put("CUDA_DEVICE_MAX_CONNECTIONS", "32");
        assertThat(Programs.run(program).output()).contains("8 ranks: open", "9 ranks: open");
    }

    /** Starts the driver, and then opens buffers. */
    static final class StartsTheDriver {
        private StartsTheDriver() {}

        @SuppressWarnings("restricted") // as an engine's own library calls the driver
        public static void main(String[] args) throws Throwable {
            SymbolLookup driver = SymbolLookup.libraryLookup("libcuda.so.1", Arena.global());
            MethodHandle init =
                    Linker.nativeLinker()
                            .downcallHandle(
                                    driver.findOrThrow("cuInit"),
                                    FunctionDescriptor.of(JAVA_INT, JAVA_INT));
            assertThat((int) init.invokeExact(0)).isZero();
            for (int numRanks : new int[] {8, 9}) {
                try (InProcessGroup group = InProcessGroup.of(numRanks)) {
                    LowLatencyLimits limits = new LowLatencyLimits(1, 128, 1, numRanks);
                    group.run(
                            communicator ->
                                    Buffer.builder(communicator)
                                            .device(Device.cuda(0))
                                            .lowLatency(limits)
                                            .timeout(LONG)
                                            .open()
                                            .close());
                    System.out.println(numRanks + " ranks: open");
                } catch (RankFailedException refused) {
                    System.out.println(numRanks + " ranks: " + refused.getCause().getMessage());
                }
            }
        }
    }
}
