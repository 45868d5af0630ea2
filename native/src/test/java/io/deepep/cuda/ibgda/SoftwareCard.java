package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.rdma.RdmaDevice;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;

/** The card in software ({@code src/softcard}), where its libraries are those of this process. */
final class SoftwareCard {
    /** The card looks at its file of faults so often. */
    private static final long LOOK_MILLIS = 60;

    private final Path faults = Path.of(System.getenv("DEEPEP_CARD_FOLDER"), "faults");
    private final MethodHandle numObjects;

    private SoftwareCard(MemorySegment function) {
        numObjects =
                Linker.nativeLinker()
                        .downcallHandle(function, FunctionDescriptor.of(ValueLayout.JAVA_INT));
    }

    /** Skips the test where there is no card in software. */
    static SoftwareCard require() {
        Assumptions.assumeTrue(
                RdmaDevice.unavailabilityReason().isEmpty()
                        && System.getenv("DEEPEP_CARD_FOLDER") != null,
                "no card in software; see -Pemulator");
        Optional<MemorySegment> function =
                SymbolLookup.libraryLookup("libibverbs.so.1", Arena.global())
                        .find("ibv_card_num_objects");
        Assumptions.assumeTrue(function.isPresent(), "the card is a real one");
        return new SoftwareCard(function.get());
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
        try {
            Files.createDirectories(faults.getParent());
            Files.writeString(faults, text + "\n");
            Thread.sleep(LOOK_MILLIS);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
