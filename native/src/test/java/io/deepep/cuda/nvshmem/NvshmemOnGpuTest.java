package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaStream;
import io.deepep.testkit.conformance.RequiredBackends;
import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The real library with one PE on a real GPU. */
class NvshmemOnGpuTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(40);
    private static final NvshmemOptions OPTIONS = FakeNvshmem.options(NvshmemTransport.NONE, "lo");

    private NvshmemInstallation installation;

    @BeforeEach
    void findBoth() {
        RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
        Optional<NvshmemInstallation> found = NvshmemInstallation.find();
        Assumptions.assumeTrue(found.isPresent(), NvshmemInstallation.CURE);
        installation = found.get();
    }

    private Nvshmem open(CudaContext context, Communicator communicator) {
        PeMap map = new PeMap(new EpTopology(0, 1, 1), PeMap.World.GLOBAL);
        return Nvshmem.open(installation, OPTIONS, map, context, communicator, TIMEOUT);
    }

    @Test
    void startsTwice() {
        try (InProcessGroup group = InProcessGroup.of(1);
                CudaContext context = CudaContext.retain(CudaDevice.of(0));
                CudaStream stream = CudaStream.create(context)) {
            try (Nvshmem nvshmem = open(context, group.communicator(0))) {
                long memory = nvshmem.allocate(1 << 20, 128);
                assertThat(memory % 128).isZero();
                assertThat(nvshmem.peerAddress(memory, 0)).hasValue(memory);
                stream.fillBytes(memory, (byte) 1, 1 << 20);
                nvshmem.quiet(stream);
                stream.synchronize();
                nvshmem.meet();
                nvshmem.free(memory);
                nvshmem.allocate(1 << 20, 128);
            }
            try (Nvshmem again = open(context, group.communicator(0))) {
                again.barrier();
                assertThatThrownBy(() -> open(context, group.communicator(0)))
                        .hasMessageContaining("already open in this process");
            }
        }
    }
}
