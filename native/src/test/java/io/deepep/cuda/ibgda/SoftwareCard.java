package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.testkit.CardFolder;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;

/** The card in software ({@code src/softcard}), where its libraries are those of this process. */
final class SoftwareCard {
    /** Longer than a card is idle before it tells. */
    private static final long TELL_MILLIS = 300;

    private final CardFolder folder;
    private final MethodHandle numObjects;

    private SoftwareCard(CardFolder folder, MemorySegment function) {
        this.folder = folder;
        numObjects =
                Linker.nativeLinker()
                        .downcallHandle(function, FunctionDescriptor.of(ValueLayout.JAVA_INT));
    }

    /** Skips the test where there is no card in software. */
    static SoftwareCard require() {
        Optional<CardFolder> folder = CardFolder.ofProcess();
        Assumptions.assumeTrue(
                RdmaDevice.unavailabilityReason().isEmpty() && folder.isPresent(),
                "no card in software; see -Pemulator");
        Optional<MemorySegment> function =
                SymbolLookup.libraryLookup("libibverbs.so.1", Arena.global())
                        .find("ibv_card_num_objects");
        Assumptions.assumeTrue(function.isPresent(), "the card is a real one");
        return new SoftwareCard(folder.get(), function.get());
    }

    /**
     * Skips the test on a real GPU, which can neither ring a card in software nor have its queues
     * read by one.
     *
     * @param rings whether the test wants that
     */
    static void requireReachOfGpu(boolean rings) {
        Assumptions.assumeTrue(
                !rings || CudaDevice.of(0).name().equals("DeepEP emulator"),
                "a real GPU does not reach a card in software");
    }

    /** Objects that users of the card have made and not given back. */
    int numObjects() {
        try {
            return (int) numObjects.invokeExact();
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** From now on; none if empty. */
    void faults(String text) {
        folder.faults(text);
    }

    /** Bytes that each port has sent, once the card has told twice that it is all. */
    Map<String, Long> bytesByPort() throws InterruptedException {
        Map<String, Long> last = folder.bytesByPort();
        while (true) {
            Thread.sleep(TELL_MILLIS);
            Map<String, Long> now = folder.bytesByPort();
            if (now.equals(last)) {
                return now;
            }
            last = now;
        }
    }
}
