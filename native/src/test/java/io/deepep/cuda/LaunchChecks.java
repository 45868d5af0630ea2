package io.deepep.cuda;

import static io.deepep.cuda.CheckContext.expect;
import static io.deepep.cuda.CheckContext.expectInts;
import static io.deepep.cuda.CheckContext.expectThrows;
import static io.deepep.cuda.CheckContext.ints;
import static io.deepep.cuda.CheckContext.write;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import com.sun.management.ThreadMXBean;
import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.error.AbiMismatchException;
import io.deepep.error.DeepEpException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.IntStream;

/** Modules and launches. */
final class LaunchChecks {
    private static final int NUM_LAUNCHES = 20_000;

    private LaunchChecks() {}

    static void addTo(Map<String, CudaSmoke.Check> checks) {
        checks.put("a struct is passed by value", LaunchChecks::struct);
        checks.put("dynamic shared memory beyond the default", LaunchChecks::sharedMemory);
        checks.put("bad device code and unknown names are reported", LaunchChecks::badModules);
        checks.put("code of another build is refused", LaunchChecks::abi);
        checks.put("a launch allocates nothing", LaunchChecks::launchCost);
    }

    private static void abi(CheckContext c) {
        KernelHeader header =
                new KernelHeader("deepep", "driver_checks_hash", LaunchChecks.class)
                        .struct(KernelStruct.builder("Some", "Any.").u64("field", "").build());
        expectThrows(
                AbiMismatchException.class,
                e ->
                        e.getMessage().contains("driver_checks.ptx")
                                && e.getMessage().contains("1234")
                                && e.getMessage().contains(Long.toHexString(header.hash())),
                () -> header.requireSame(c.module));
        String image = new String(CheckContext.image(), StandardCharsets.UTF_8);
        String hash = Long.toUnsignedString(header.hash());
        byte[] same =
                image.replace("driver_checks_hash = 4660", "driver_checks_hash = " + hash)
                        .getBytes(StandardCharsets.UTF_8);
        try (CudaModule module = CudaModule.load(c.cuda, "same", same)) {
            header.requireSame(module);
        }
    }

    private static void struct(CheckContext c) {
        try (CudaMemory out = CudaMemory.allocate(c.cuda, 24)) {
            KernelParams params =
                    KernelParams.struct(c.arena, 24)
                            .setLong(0, out.address())
                            .setInt(8, -5)
                            .setInt(12, Float.floatToRawIntBits(2.5f))
                            .setLong(16, 1L << 50);
            c.module.function("echo").launch(new LaunchConfig(c.arena, 1, 1), params, c.stream);
            c.stream.synchronize();
            MemorySegment host = c.arena.allocate(JAVA_LONG, 3);
            out.copyTo(0, host);
            long[] values = host.toArray(JAVA_LONG);
            expect(
                    values[0] == -5 && values[1] == 10 && values[2] == 1L << 50,
                    values[0],
                    values[1],
                    values[2]);
        }
    }

    private static void sharedMemory(CheckContext c) {
        int n = 20_000; // 80 kB
        int[] words = IntStream.range(0, n).toArray();
        int[] reversed = IntStream.range(0, n).map(i -> n - 1 - i).toArray();
        CudaFunction reverse = c.module.function("reverse");
        try (CudaMemory memory = CudaMemory.allocate(c.cuda, 4L * n)) {
            write(memory, words);
            LaunchConfig config = new LaunchConfig(c.arena, 1, 256).sharedBytes(4 * n);
            KernelParams params =
                    KernelParams.arguments(c.arena, JAVA_LONG, JAVA_INT)
                            .setLong(0, memory.address())
                            .setInt(8, n);
            expectThrows(
                    NativeCallException.class,
                    e -> e.call().equals("cuLaunchKernelEx") && !e.isFatal(),
                    () -> reverse.launch(config, params, c.stream));
            reverse.setMaxDynamicSharedBytes(4 * n);
            reverse.launch(config, params, c.stream);
            c.stream.synchronize();
            expectInts(ints(memory, n), reversed);
        }
        int resident = reverse.maxBlocksPerSm(256, 4 * n);
        expect(resident >= 1, resident);
        expect(reverse.maxBlocksPerSm(256, 0) > resident, "shared memory does not limit residency");
        expectThrows(
                IllegalArgumentException.class,
                e -> e.getMessage().contains("numBytes=1000000 is not in [0, "),
                () -> reverse.setMaxDynamicSharedBytes(1_000_000));
    }

    private static void badModules(CheckContext c) {
        expectThrows(
                NativeCallException.class,
                e ->
                        e.getMessage().contains("no_such_kernel")
                                && e.getMessage().contains("CUDA_ERROR_NOT_FOUND"),
                () -> c.module.function("no_such_kernel"));
        expectThrows(
                DeepEpUnavailableException.class,
                e -> e.reason().contains("missing.fatbin") && e.cure().contains("nvcc"),
                () ->
                        CudaModule.loadResource(
                                c.cuda,
                                "missing.fatbin",
                                LaunchChecks.class.getResource("missing.fatbin")));
        String text = new String(CheckContext.image(), StandardCharsets.US_ASCII);
        expectThrows(
                NativeCallException.class,
                e -> e.getMessage().contains("broken") && e.getMessage().contains("error"),
                () -> load(c, text.replaceFirst("mov.u32", "move.u32")));
        expectThrows(
                DeepEpException.class,
                e -> !e.isFatal(),
                () -> load(c, text.replaceFirst("\\.version 8\\.0", ".version 99.0")));
        c.stream.synchronize();
    }

    private static void load(CheckContext c, String ptx) {
        CudaModule.load(c.cuda, "broken", ptx.getBytes(StandardCharsets.US_ASCII)).close();
    }

    private static void launchCost(CheckContext c) {
        CudaFunction add = c.module.function("add_value");
        try (CudaMemory memory = CudaMemory.allocate(c.cuda, 16);
                CudaEvent event = CudaEvent.create(c.cuda);
                Arena arena = Arena.ofConfined()) {
            KernelParams params =
                    KernelParams.arguments(arena, JAVA_LONG, JAVA_INT, JAVA_INT)
                            .setLong(0, memory.address());
            LaunchConfig config = new LaunchConfig(arena, 1, 32);
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            long leastBytes = Long.MAX_VALUE;
            double leastNanos = Double.MAX_VALUE;
            // The first rounds are the compiler's.
            for (int round = 0; round < 10; round++) {
                long bytes = threads.getCurrentThreadAllocatedBytes();
                long start = System.nanoTime();
                for (int i = 0; i < NUM_LAUNCHES; i++) {
                    params.setInt(8, i & 3);
                    add.launch(config.grid(1 + (i & 1)), params, c.stream);
                }
                double nanos = (double) (System.nanoTime() - start) / NUM_LAUNCHES;
                c.stream.record(event);
                event.synchronize();
                leastBytes = Math.min(leastBytes, threads.getCurrentThreadAllocatedBytes() - bytes);
                leastNanos = Math.min(leastNanos, nanos);
            }
            System.out.printf(
                    "     launch: %.0f ns, current context: %.1f ns%n",
                    leastNanos, currentNanos(c));
            expect(leastBytes < NUM_LAUNCHES, "bytes for", NUM_LAUNCHES, "launches:", leastBytes);
        }
    }

    private static double currentNanos(CheckContext c) {
        int n = 1_000_000;
        for (int i = 0; i < n; i++) {
            c.cuda.makeCurrent();
        }
        long start = System.nanoTime();
        for (int i = 0; i < n; i++) {
            c.cuda.makeCurrent();
        }
        return (double) (System.nanoTime() - start) / n;
    }
}
