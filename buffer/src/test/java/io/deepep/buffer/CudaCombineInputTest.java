package io.deepep.buffer;

import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.testkit.conformance.BackendSuite;
import org.junit.jupiter.api.Test;

/**
 * Combine of rows wherever an engine has them: peers pull from plain memory, rows in memory that
 * they have no access to are brought into the heap meanwhile, misaligned ones before.
 */
@BackendSuite(only = "cuda")
class CudaCombineInputTest {
    private static final int ALLOCATION_ALIGNMENT = 256;

    @Test
    void plainMemory() throws InterruptedException {
        inPlainMemory(ALLOCATION_ALIGNMENT);
    }

    @Test
    void misalignedPlainMemory() throws InterruptedException {
        inPlainMemory(DType.BF16.sizeBytes());
    }

    @Test
    void memoryThatPeersHaveNoAccessTo() throws InterruptedException {
        CudaExchange.run((_, exchange) -> requireHome(exchange, exchange.outputs()));
    }

    @Test
    void rankByRankInAnotherPlace() throws InterruptedException {
        CudaExchange.run(
                (communicator, exchange) -> {
                    try (CudaMemory plain = plainMemory(exchange)) {
                        Tensor elsewhere = copyTo(exchange, plain, 0);
                        communicator.barrier(CudaExchange.TIMEOUT);
                        boolean even = communicator.rank() % 2 == 0;
                        requireHome(exchange, even ? elsewhere : exchange.outputs());
                        communicator.barrier(CudaExchange.TIMEOUT);
                    }
                });
    }

    private static void inPlainMemory(int offset) throws InterruptedException {
        CudaExchange.run(
                (communicator, exchange) -> {
                    try (CudaMemory memory = plainMemory(exchange)) {
                        Tensor rows = copyTo(exchange, memory, offset);
                        communicator.barrier(CudaExchange.TIMEOUT);
                        requireHome(exchange, rows);
                        // Freeing waits for kernels, also for one that waits for this rank.
                        communicator.barrier(CudaExchange.TIMEOUT);
                    }
                });
    }

    private static CudaMemory plainMemory(CudaExchange exchange) {
        CudaContext context = CudaContext.shared(CudaDevice.of(exchange.device.index()));
        Tensor rows = exchange.outputs();
        long bytes = rows.numElements() * rows.dtype().sizeBytes();
        return CudaMemory.allocate(context, bytes + ALLOCATION_ALIGNMENT);
    }

    /** The expert outputs, {@code offset} bytes into {@code memory}. */
    private static Tensor copyTo(CudaExchange exchange, CudaMemory memory, int offset) {
        Tensor rows = exchange.outputs();
        Tensor copy =
                Tensor.onDevice(
                        exchange.device,
                        memory.address() + offset,
                        memory.numBytes() - offset,
                        rows.dtype(),
                        rows.shape(),
                        rows.strides());
        exchange.write(rows, copy);
        return copy;
    }

    /** Again and again, since what one call leaves behind must not serve the next. */
    private static void requireHome(CudaExchange exchange, Tensor rows) {
        DispatchHandle handle =
                exchange.buffer.dispatch(exchange.dispatch(), CallOptions.sync()).handle();
        CombinePlan plan = CombinePlan.builder(rows, handle).build();
        for (int call = 0; call < 3; call++) {
            exchange.verify(exchange.buffer.combine(plan, CallOptions.sync()));
        }
    }
}
