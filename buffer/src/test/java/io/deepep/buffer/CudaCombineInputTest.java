package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.normal.NormalRank;
import org.junit.jupiter.api.Test;

/**
 * Combine of rows wherever an engine has them: peers pull from plain memory, rows in memory that
 * they have no access to are brought into the heap meanwhile, misaligned ones before.
 */
@BackendSuite(only = "cuda")
class CudaCombineInputTest {
    private static final int ALLOCATION_ALIGNMENT = 256;

    @Test
    void plainMemory() {
        inPlainMemory(ALLOCATION_ALIGNMENT);
    }

    @Test
    void misalignedPlainMemory() {
        inPlainMemory(DType.BF16.sizeBytes());
    }

    @Test
    void memoryThatPeersHaveNoAccessTo() {
        CudaExchange.run(rank -> requireHome(rank, rank.outputs()));
    }

    @Test
    void rankByRankInAnotherPlace() {
        CudaExchange.run(
                rank -> {
                    try (CudaMemory plain = plainMemory(rank)) {
                        Tensor elsewhere = copyTo(rank, plain, 0);
                        rank.context().meet();
                        boolean even = rank.context().rank() % 2 == 0;
                        requireHome(rank, even ? elsewhere : rank.outputs());
                        rank.context().meet();
                    }
                });
    }

    private static void inPlainMemory(int offset) {
        CudaExchange.run(
                rank -> {
                    try (CudaMemory memory = plainMemory(rank)) {
                        Tensor rows = copyTo(rank, memory, offset);
                        rank.context().meet();
                        requireHome(rank, rows);
                        // Freeing waits for kernels, also for one that waits for this rank.
                        rank.context().meet();
                    }
                });
    }

    private static CudaMemory plainMemory(NormalRank rank) {
        CudaContext context = CudaContext.shared(CudaDevice.of(rank.context().device().index()));
        Tensor rows = rank.outputs();
        long bytes = rows.numElements() * rows.dtype().sizeBytes();
        return CudaMemory.allocate(context, bytes + ALLOCATION_ALIGNMENT);
    }

    /** The expert outputs, {@code offset} bytes into {@code memory}. */
    private static Tensor copyTo(NormalRank rank, CudaMemory memory, int offset) {
        Tensor rows = rank.outputs();
        Tensor copy =
                Tensor.onDevice(
                        rank.context().device(),
                        memory.address() + offset,
                        memory.numBytes() - offset,
                        rows.dtype(),
                        rows.shape(),
                        rows.strides());
        rank.context().copy(rows, copy);
        return copy;
    }

    /** Again and again, since what one call leaves behind must not serve the next. */
    private static void requireHome(NormalRank rank, Tensor rows) {
        Buffer buffer = rank.context().buffer();
        CombinePlan plan =
                CombinePlan.builder(rows, buffer.dispatch(CudaExchange.worstCase(rank)).handle())
                        .build();
        for (int call = 0; call < 3; call++) {
            rank.verify(buffer.combine(plan));
        }
    }
}
