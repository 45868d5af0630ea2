package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import io.deepep.Network;
import io.deepep.NormalLimits;
import io.deepep.buffer.Placed;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.CommunicatorProvider;
import io.deepep.spi.HeapRanks;
import io.deepep.testkit.conformance.ProcessRanks;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.time.Duration;

/**
 * A process with one or several ranks that open heaps on the stand-in driver, write into each
 * other's memory, read their own, and close: all at once, or one after the other while the rest go
 * on writing.
 */
@SuppressWarnings("restricted") // its device memory is memory of a stand-in
final class HeapProgram {
    private static final Duration LONG = Duration.ofMinutes(2);
    private static final int NUM_DEVICES = 2;
    private static final long NUM_BYTES = 300_000;

    private HeapProgram() {}

    /**
     * Runs the ranks of this process and says how it went.
     *
     * @param args ranks of this process; whether they close one after the other
     */
    public static void main(String[] args) throws InterruptedException {
        int perProcess = Integer.parseInt(args[0]);
        boolean inTurn = Boolean.parseBoolean(args[1]);
        try (InProcessGroup threads = InProcessGroup.of(perProcess)) {
            threads.run(
                    thread -> {
                        try (Communicator communicator =
                                CommunicatorProvider.load()
                                        .open(
                                                ProcessRanks.variables(perProcess, thread.rank()),
                                                LONG)) {
                            run(communicator, inTurn);
                        }
                    });
        }
        System.out.println("live " + live());
    }

    private static void run(Communicator communicator, boolean inTurn) {
        int rank = communicator.rank();
        int numRanks = communicator.size();
        CudaContext context = CudaContext.shared(CudaDevice.of(rank % NUM_DEVICES));
        NormalLimits limits = NormalLimits.of(8, 128, 2, numRanks);
        BufferOptions options =
                Placed.options(communicator, numRanks, Network.auto(), limits, null);
        CudaDevice gpu = context.cudaDevice();
        int sharing = GpuSharing.agree(communicator, options, gpu, gpu.numSms()).mostRanksPerGpu();
        require(sharing, Math.ceilDiv(numRanks, NUM_DEVICES));
        CudaHeaps heaps;
        try {
            heaps =
                    CudaHeaps.open(
                            new HeapRanks(communicator, options.topology(), LONG),
                            context,
                            NUM_BYTES,
                            CudaHeaps.Reach.GROUP);
        } catch (DeepEpUnavailableException refused) {
            System.out.println("refused " + refused.getMessage());
            return;
        }
        for (int peer = 0; peer < numRanks; peer++) {
            require(memory(heaps, peer).get(ValueLayout.JAVA_LONG, NUM_BYTES - 8), 0);
        }
        communicator.barrier(LONG);
        for (int peer = 0; peer < numRanks; peer++) {
            memory(heaps, peer).set(ValueLayout.JAVA_LONG, 8L * rank, 1000L * rank + peer);
        }
        communicator.barrier(LONG);
        for (int peer = 0; peer < numRanks; peer++) {
            long seen = memory(heaps, rank).get(ValueLayout.JAVA_LONG, 8L * peer);
            require(seen, 1000L * peer + rank);
        }
        communicator.barrier(LONG);
        if (inTurn) {
            closeInTurn(communicator, heaps);
        }
        heaps.close();
        communicator.barrier(LONG);
    }

    /** From rank 0 on; memory of ranks that have closed is still there for those that have not. */
    private static void closeInTurn(Communicator communicator, CudaHeaps heaps) {
        for (int closing = 0; closing < communicator.size(); closing++) {
            if (communicator.rank() == closing) {
                heaps.close();
                heaps.close();
            }
            communicator.barrier(LONG);
            if (communicator.rank() > closing) {
                memory(heaps, closing).fill((byte) closing);
                require(memory(heaps, closing).get(ValueLayout.JAVA_BYTE, 5), closing);
            }
            communicator.barrier(LONG);
        }
    }

    /** What the stand-in calls device memory is host memory. */
    private static MemorySegment memory(CudaHeaps heaps, int rank) {
        return MemorySegment.ofAddress(heaps.addresses().get(rank)).reinterpret(NUM_BYTES);
    }

    private static void require(long actual, long expected) {
        if (actual != expected) {
            throw new AssertionError("expected " + expected + " but was " + actual);
        }
    }

    /** Mappings and handles that the stand-in still holds for this process. */
    private static int live() {
        MemorySegment function =
                SymbolLookup.libraryLookup("libcuda.so.1", Arena.global())
                        .find("fakeCudaLive")
                        .orElseThrow();
        try {
            return (int)
                    Linker.nativeLinker()
                            .downcallHandle(function, FunctionDescriptor.of(ValueLayout.JAVA_INT))
                            .invokeExact();
        } catch (Throwable failure) {
            throw new AssertionError(failure);
        }
    }
}
