package io.deepep.cuda;

import static io.deepep.cuda.CheckContext.expect;
import static io.deepep.cuda.CheckContext.expectInts;
import static io.deepep.cuda.CheckContext.ints;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Graph;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.cuda.memory.VirtualMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * What a rank may do while a kernel of another rank waits for it on the same GPU: these calls must
 * not wait for that kernel.
 */
final class SharingChecks {
    private static final long HOLD_NANOS = 3_000_000_000L;
    private static final int STATE_LOADED = 1;
    private static final CuCall GET_FUNCTION =
            CuCall.of("cuModuleGetFunction", ADDRESS, JAVA_LONG, ADDRESS);
    private static final CuCall FUNC_IS_LOADED = CuCall.of("cuFuncIsLoaded", ADDRESS, JAVA_LONG);

    private SharingChecks() {}

    static void addTo(Map<String, CudaSmoke.Check> checks) {
        checks.put("kernels are on the GPU before they are launched", SharingChecks::loaded);
        checks.put("a pool's blocks are reused and outlive it", SharingChecks::pool);
        checks.put(
                "pools, pinned memory, copies, events and graphs do not wait for a kernel",
                SharingChecks::besideWaitingKernel);
    }

    private static void loaded(CheckContext c) {
        c.module.function("reverse");
        long handle = GET_FUNCTION.ask(c.module.handle(), c.arena.allocateFrom("reverse"));
        expect(FUNC_IS_LOADED.ask(handle) == STATE_LOADED, "would be loaded by its launch");
    }

    private static void pool(CheckContext c) {
        DevicePool pool = new DevicePool(c.stream, 1 << 20);
        long reserved = pool.numBytes();
        DevicePool.Block zeroed = pool.allocateZeroed(1000);
        c.addValue(c.stream, zeroed.address(), 4, 3);
        c.stream.synchronize();
        expect(pool.numBytes() == reserved, "grew to", pool.numBytes());
        DevicePool.Block large = pool.allocate(100L << 20);
        expect(pool.numBytes() >= reserved + (100L << 20), "holds", pool.numBytes());
        expect(large.address() % 256 == 0 && zeroed.address() % 256 == 0, "alignment");
        pool.close();
        pool.close();
        CheckContext.expectThrows(
                IllegalStateException.class,
                e -> e.getMessage().contains("closed"),
                () -> pool.allocate(1));
        c.addValue(c.stream, zeroed.address(), 4, 4);
        MemorySegment host = c.arena.allocate(JAVA_INT, 4);
        c.stream.copy(host.address(), zeroed.address(), 16);
        c.stream.synchronize();
        expectInts(host.toArray(JAVA_INT), 7, 7, 7, 7);
        expect(zeroed.numBytes() >= 1000, "block of", zeroed.numBytes());
    }

    private static void besideWaitingKernel(CheckContext c) {
        List<AutoCloseable> kept = new ArrayList<>();
        try (PinnedMemory words = PinnedMemory.allocate(c.cuda, 16);
                CudaStream waiting = CudaStream.create(c.cuda)) {
            KernelParams params =
                    KernelParams.arguments(c.arena, JAVA_LONG, JAVA_LONG)
                            .setLong(0, words.deviceAddress())
                            .setLong(8, HOLD_NANOS);
            c.module.function("hold").launch(new LaunchConfig(c.arena, 1, 1), params, waiting);
            while (word(words, 1) == 0) {
                Thread.onSpinWait();
            }
            work(c, kept);
            expect(word(words, 1) == 1, "something waited until the kernel gave up");
            JAVA_INT.varHandle().setRelease(words.segment(), 0L, 1);
            waiting.synchronize();
            expect(word(words, 1) == 2, "the kernel gave up");
        } finally {
            kept.forEach(SharingChecks::close);
        }
    }

    private static int word(PinnedMemory words, int idx) {
        return (int) JAVA_INT.varHandle().getAcquire(words.segment(), 4L * idx);
    }

    private static void close(AutoCloseable closeable) {
        try {
            closeable.close();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static void work(CheckContext c, List<AutoCloseable> kept) {
        DevicePool pool = new DevicePool(c.stream);
        DevicePool.Block block = pool.allocateZeroed(64L << 20);
        CudaMemory plain = CudaMemory.allocate(c.cuda, 16);
        kept.add(plain);
        kept.add(PinnedMemory.allocate(c.cuda, 1 << 16));
        c.addValue(c.stream, block.address(), 4, 2);
        MemorySegment host = c.arena.allocate(JAVA_INT, 1 << 20);
        c.stream.copy(host.address(), block.address(), host.byteSize());
        c.stream.copy(plain.address(), block.address(), 16);
        try (CudaEvent event = c.stream.record()) {
            event.synchronize();
        }
        expectInts(host.asSlice(0, 16).toArray(JAVA_INT), 2, 2, 2, 2);
        try (Graph graph =
                Graph.capture(c.stream, () -> c.addValue(c.stream, plain.address(), 4, 5))) {
            graph.replay();
            c.stream.synchronize();
        }
        expectInts(ints(plain, 4), 7, 7, 7, 7);
        VirtualMemory.allocate(c.cuda, 64L << 20, VirtualMemory.Export.NONE).close();
        pool.close();
    }
}
