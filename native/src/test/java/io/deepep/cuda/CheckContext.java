package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.memory.CudaMemory;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.function.Predicate;

/**
 * What the checks share: a context on the first GPU, a stream, the test kernels. Plain Java, so
 * that it runs anywhere.
 */
final class CheckContext implements AutoCloseable {
    /** A check that this machine has no hardware or permission for. */
    static final class NotHereException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        NotHereException(String reason) {
            super(reason);
        }
    }

    final Arena arena = Arena.ofShared();
    final CudaContext cuda = CudaContext.retain(CudaDevice.of(0));
    final CudaStream stream = CudaStream.create(cuda);
    final CudaModule module =
            CudaModule.loadResource(
                    cuda, "driver_checks.ptx", CheckContext.class.getResource("driver_checks.ptx"));
    private final CudaFunction addValue = module.function("add_value");

    /** Enqueues {@code words[0..n) += value}. */
    void addValue(CudaStream on, long words, int n, int value) {
        KernelParams params =
                KernelParams.arguments(arena, JAVA_LONG, JAVA_INT, JAVA_INT)
                        .setLong(0, words)
                        .setInt(8, n)
                        .setInt(12, value);
        addValue.launch(new LaunchConfig(arena, 2, 64), params, on);
    }

    static byte[] image() {
        try (InputStream in = CheckContext.class.getResourceAsStream("driver_checks.ptx")) {
            return in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static int[] ints(CudaMemory memory, int n) {
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment host = confined.allocate(JAVA_INT, n);
            memory.copyTo(0, host);
            return host.toArray(JAVA_INT);
        }
    }

    static void write(CudaMemory memory, int... values) {
        try (Arena confined = Arena.ofConfined()) {
            memory.copyFrom(0, confined.allocateFrom(JAVA_INT, values));
        }
    }

    static void expect(boolean condition, Object... what) {
        if (!condition) {
            throw new AssertionError(Arrays.toString(what));
        }
    }

    static void expectInts(int[] actual, int... expected) {
        expect(
                Arrays.equals(actual, expected),
                "is",
                Arrays.toString(actual),
                "not",
                Arrays.toString(expected));
    }

    /** Runs the action, which must throw that type, with something to be said of it. */
    static <E extends Throwable> E expectThrows(
            Class<E> type, Predicate<E> holds, Runnable action) {
        try {
            action.run();
        } catch (Throwable t) {
            if (!type.isInstance(t)) {
                throw new AssertionError("threw " + t + " instead of " + type.getSimpleName(), t);
            }
            E e = type.cast(t);
            expect(holds.test(e), "unexpected", e);
            return e;
        }
        throw new AssertionError("did not throw " + type.getSimpleName());
    }

    @Override
    public void close() {
        cuda.synchronize();
        module.close();
        stream.close();
        cuda.close();
        arena.close();
    }
}
