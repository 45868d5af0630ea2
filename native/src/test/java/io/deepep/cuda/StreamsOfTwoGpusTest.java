package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.testkit.conformance.RequiredBackends;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StreamsOfTwoGpusTest {
    private static final int GATE = 0;
    private static final int VALUE = 4;

    /** To record the event makes the other GPU current; a default stream is the current one's. */
    @Test
    void aDefaultStreamWaitsForTheOtherGpusCall() throws InterruptedException {
        RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
        Assumptions.assumeTrue(CudaDriver.numDevices() > 1, "one GPU");
        CudaContext calling = CudaContext.shared(CudaDevice.of(0));
        CudaContext waiting = CudaContext.shared(CudaDevice.of(1));
        try (CudaStream stream = CudaStream.create(calling);
                CudaStream ofDefault = CudaStream.wrap(waiting, 0);
                PinnedMemory words = PinnedMemory.allocate(calling, 16);
                CudaMemory seen = CudaMemory.allocate(waiting, Integer.BYTES)) {
            long address = words.deviceAddress();
            stream.waitForInt(address + GATE, 1);
            stream.writeInt(address + VALUE, 7);
            CallEvent call = new CallEvent(stream);
            call.followStream(true);
            call.record();
            ofDefault.waitFor(call);
            ofDefault.copy(seen.address(), address + VALUE, Integer.BYTES);
            Thread.sleep(100); // enough for a copy that does not wait
            words.segment().set(JAVA_INT, GATE, 1);
            ofDefault.synchronize();
            assertThat(CheckContext.ints(seen, 1)).containsExactly(7);
        }
    }
}
